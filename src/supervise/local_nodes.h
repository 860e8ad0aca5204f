// The local launcher, behind `ezpz local-run`: starts the ranks of simulated nodes on this machine.
// It is to one machine what srun is to a cluster, and prints what srun would: where ranks start,
// who died of what, what was torn down. Each node is a session of its own, led by a node process,
// so that a node can die as a whole.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"

namespace ezpz::supervise {

struct LocalRun {
  std::vector<std::string> hosts;  // in rank order
  std::vector<int> ranks_on_host;  // as many as hosts
  bool kill_on_bad_exit = true;
  int master_port = 0;
  double kill_wait_s = 5;  // between SIGTERM and SIGKILL when tearing down
  Argv command;
};

// Runs to the end. Returns 0 when every rank returned 0, else the shell's code of the first that
// did not; 137 when a node was lost, 2 when the command cannot be started.
//
// SIGTERM: passed on to the ranks; a second one ends them at once. SIGUSR1/2: passed on. If this
// process dies, the node processes end their ranks.
int run_local_nodes(const LocalRun&);

}  // namespace ezpz::supervise
