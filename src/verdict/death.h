// What the way a process died says about who did it.
#pragma once

#include "base/fact.h"

namespace ezpz::verdict {

enum class Hand {
  outside,   // SIGKILL: no program does this to itself; somebody or the kernel did
  asked,     // TERM, INT, HUP, USR1/2: somebody asked it to end
  itself,    // SEGV, ABRT, BUS, ...: the program's own fault
  exit,      // a non-zero exit code: the program gave up, for a reason it may have printed
  unusable,  // an exit code that says the command could not be run at all
  unknown,
};

// Shells and wrappers report a child's signal as 128 + signal: that is the signal again.
int signal_of_death(const Fact& death);
Hand hand_in_death(const Fact& death);

}  // namespace ezpz::verdict
