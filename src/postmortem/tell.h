// A verdict as a person or a program reads it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "postmortem/autopsy.h"
#include "postmortem/replay.h"

namespace ezpz::postmortem {

// Three lines to act on: what ended it, what to do, how sure and how far it came. Then the evidence
// with line numbers, then what was set aside and why.
std::string tell(const Autopsy&);
std::string tell(const Replay&);
// A line a log.
struct Named {
  std::string log;
  Autopsy autopsy;
};
std::string table(const std::vector<Named>&);

// {verdict, action, culprits, confidence, rc, walltime_left_s, progress, facts, ...}; what is not
// known is null.
Json to_json(const Autopsy&);
Json to_json(const Replay&);

}  // namespace ezpz::postmortem
