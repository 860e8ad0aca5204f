// Which of srun's flags a user gave, so that ours of the same meaning stay out of the way.
#pragma once

#include <set>
#include <string>

#include "base/process.h"

namespace ezpz::launch {

// Long names without dashes ("kill-on-bad-exit"); short forms are translated.
std::set<std::string> srun_flags_in(const Argv& user_flags);

}  // namespace ezpz::launch
