// JSON that came from elsewhere (a model hub, another program's checkpoint), read without trust: a
// repeated key, deep nesting, or bytes after the end are errors, and nothing is thrown.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ezpz::train {

// Objects by name (std::map): a file may hold 100 000 tensors.
using StrictJson = nlohmann::json;

Result<StrictJson> parse_strict_json(std::string_view text, const std::string& where);

// A member as a whole number, a text, ...; nothing when it is missing or of another type. Numbers
// must be whole and not negative.
std::optional<uint64_t> json_uint(const StrictJson&, const char* key);
std::optional<double> json_number(const StrictJson&, const char* key);
std::optional<std::string> json_text(const StrictJson&, const char* key);
std::optional<bool> json_bool(const StrictJson&, const char* key);

}  // namespace ezpz::train
