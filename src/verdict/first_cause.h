// Of everything that looks like a cause, the one the attempt died of.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verdict/case_file.h"

namespace ezpz::verdict {

// How hard it is for this evidence to be only the echo of somebody else's death. Smaller wins;
// among equals the first in time.
enum class Weight {
  proof,         // memory ran out: nothing but that prints it, and it explains the deaths around it
  own_trouble,   // a broken GPU, a missing program, a full disk, ranks of one host SIGKILLed
  may_be_echo,   // a traceback, a lost connection, a timeout, a crash: a peer's death causes these
  bare_exit,     // a process ended and nothing says why
  unclassified,  // an error text of unknown kind
};

struct Cause {
  const Exhibit* exhibit;
  Weight weight;
  Kind kind;  // of a message; unknown for a death that only tells how a process ended
};

// Ranks that died by SIGKILL before the teardown.
struct Killed {
  std::vector<const Exhibit*> deaths;
  std::set<std::string> hosts;  // active ones
  // All of them on one host, that host is known, and others stayed alive.
  bool one_host_alone = false;
};
Killed killed(const CaseFile&);

// Nothing when no fact is a genuine cause.
std::optional<Cause> first_cause(const CaseFile&);

// Every genuine cause of the same kind and event as this one, in order.
std::vector<const Exhibit*> same_failure(const CaseFile&, const Cause&);

}  // namespace ezpz::verdict
