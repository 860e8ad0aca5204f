// The flags of somebody else's command, read the way most programs read theirs: --name value,
// --name=value, --name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"

namespace ezpz::doctor {

// The value of the flag where it stands last ("" for one that stands alone); nothing when it does
// not stand there.
std::optional<std::string> flag_value(const Argv& command, const std::vector<std::string>& names);

// "false", "0", "no", "off": a switch that is written down and off.
bool says_no(std::string_view value);

}  // namespace ezpz::doctor
