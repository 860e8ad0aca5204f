// What the scheduler's words for a node and a job say to a verdict.
#pragma once

#include <optional>
#include <string_view>

#include "base/fact.h"

namespace ezpz::verdict {

enum class NodeHealth {
  fine,    // or draining: the node still runs what it has; or a state nobody knows
  silent,  // does not answer the scheduler: NOT_RESPONDING, the '*' Slurm appends, "state-unknown"
  lost,    // DOWN, FAIL and kin, PBS's "down", "down,offline", "state-unknown,down"
};
NodeHealth node_health(std::string_view state);

// How a job in this state ended, when the state says so by itself: TIMEOUT, CANCELLED, PREEMPTED,
// NODE_FAIL, ... Nothing for RUNNING, COMPLETING, FAILED, for PBS's letters (R, E, F, H, ...) and
// for states nobody knows.
std::optional<Kind> end_of_job(std::string_view job_state);

}  // namespace ezpz::verdict
