// Does ezpz know this machine and the launcher's messages, or do only general patterns apply? A
// machine without patterns of its own must not be blind in silence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/grammar.h"
#include "site/machine.h"

namespace ezpz::app {

struct PatternNotice {
  std::string line;                    // for the user, one line
  std::vector<std::string> launchers;  // that no patterns file covers
};

// in_use: the launcher of this job. machines: the registered ones.
std::optional<PatternNotice> pattern_notice(const site::Detection& machine,
                                            const std::string& in_use,
                                            const evidence::Grammar& grammar,
                                            const std::vector<std::string>& machines);

}  // namespace ezpz::app
