// One simulated node: a process that leads its own session, starts its ranks, reports their ends,
// and leaves nobody behind. Not a public face; run_local_nodes() forks it.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"

namespace ezpz::supervise {

struct LocalRank {
  int rank;
  int local_rank;
  EnvChanges env;
};

// What a node tells the launcher, whole in one write.
struct RankReport {
  int rank;
  Exit exit;
};

// Orders from the launcher, one byte each: a signal number for every rank. The end of the pipe
// means the launcher is gone: kill all.
//
// Returns the node process's exit code, when every rank and everything they started is gone.
int run_local_node(const Argv& command, const std::vector<LocalRank>& ranks, int orders_fd,
                   int reports_fd);

}  // namespace ezpz::supervise
