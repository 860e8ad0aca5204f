// Which of our variables ranks get where a launcher asks for names. What belongs to this host or to
// this login (HOME, HOSTNAME, DISPLAY, TMPDIR, ...) stays; what programs are tuned with goes along.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "site/environment.h"

namespace ezpz::launch {

bool goes_along(std::string_view variable_name);
// Those that are set, by name; a shell's exported functions never.
std::vector<std::string> inherited_names(const site::Environment&);

}  // namespace ezpz::launch
