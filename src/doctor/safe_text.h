// What may be shown of a variable: no control bytes, never a secret, and no more than fits a line.
#pragma once

#include <string>
#include <string_view>

namespace ezpz::doctor {

// By its name: *TOKEN*, *SECRET*, *KEY*, *COOKIE*, ...
bool may_be_secret(std::string_view variable);
// "FI_PROVIDER='tcp'"; for one that may be secret: "HF_TOKEN (set, not shown)".
std::string shown(std::string_view variable, std::string_view value);
// "4.0 GiB"
std::string human_bytes(unsigned long long bytes);

}  // namespace ezpz::doctor
