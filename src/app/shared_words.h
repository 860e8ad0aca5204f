// What several subcommands understand alike on their command lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/process.h"
#include "base/result.h"

namespace ezpz::app {

// -x NAME or -x NAME=VALUE. An empty value is a value.
struct Variable {
  std::string name;
  std::optional<std::string> value;
};
Result<Variable> parse_variable(std::string_view text);

// "-- FLAGS -- CMD": what begins with a dash behind our own "--" is for a program that we start
// (the launcher, the scheduler), up to the next "--"; it is taken out of rest, of which CMD
// remains. A command of that shape can still be run: give that program an empty set of flags, "--
// -- CMD".
Argv take_foreign_flags(Argv& rest, bool after_dashes);

}  // namespace ezpz::app
