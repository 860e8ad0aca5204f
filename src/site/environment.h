// The process environment as a value, so that everything that reads it can be tested with a table.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace ezpz::site {

using Environment = std::map<std::string, std::string>;

Environment current_environment();
// The variable when it is set and not empty.
std::optional<std::string> get(const Environment&, const std::string& name);

}  // namespace ezpz::site
