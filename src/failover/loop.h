// The main job: run an attempt, say what ended it, act, run again, until there is a reason to stop.
#pragma once

#include <string>
#include <vector>

#include "failover/allocation.h"
#include "failover/world.h"
#include "verdict/policy.h"

namespace ezpz::failover {

struct LoopSettings {
  int max_relaunches = 10;  // --max-failover-retries
  verdict::Blind blind = verdict::Blind::last_resort;
  int min_active = 0;  // --min-nodes: shrink to no fewer when spares run out; 0: never shrink
  double default_restart_s = 30;  // what a relaunch is taken to cost before one was seen
};

struct LoopResult {
  std::string stop_reason;  // "success", "exhausted", ...: the word after "FAILOVER STOP: "
  Kind last_kind = Kind::unknown;
  Exit last_exit;
  bool ended_by_guard = false;  // the last attempt: its exit is our doing
  int attempts = 0;
  int swaps = 0;
};

// Runs to the end. allocation is the caller's and tells afterwards who was retired.
LoopResult run_failover(World&, Allocation& allocation, const LoopSettings&);

}  // namespace ezpz::failover
