// From a log, and what is known besides, to a verdict and what to do: the evidence engine without
// the loop. The same code judges a running job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/node.h"
#include "evidence/grammar.h"
#include "evidence/stream.h"
#include "verdict/policy.h"

namespace ezpz::postmortem {

// What a log cannot tell of itself.
struct Circumstances {
  std::optional<int> rc;     // what the launcher returned, as a shell tells it
  std::vector<Node> active;  // the hosts it ran on; empty: those that the log names
  NodeNaming naming;
  verdict::NetworkWish network;
};

struct Autopsy {
  verdict::AttemptRecord record;
  verdict::Verdict verdict;
  verdict::Decision decision;
  verdict::NodeKey node_key;
  std::optional<double> walltime_left_s;  // at the end, where the scheduler's clock is on record
};

// The stream has been fed to its end.
verdict::AttemptRecord record_of(const evidence::Stream&, const Circumstances&);

// What would be done next after this attempt alone, with a spare at hand and a relaunch allowed.
Autopsy examine(verdict::AttemptRecord, const NodeNaming&, const evidence::Grammar&);

}  // namespace ezpz::postmortem
