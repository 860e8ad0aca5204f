// The ssh launcher, behind `ezpz ssh-run`: one ssh for each host, ezpz at the far end of it
// (ssh_node.h). To hosts without MPI it is what srun is to a cluster, and prints what srun would:
// where ranks start, who died of what, what was torn down, which host it lost contact with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/process.h"

namespace ezpz::supervise {

struct SshRun {
  std::vector<std::string> hosts;  // in rank order; the first has rank 0 and the rendezvous
  std::vector<int> ranks_on_host;  // as many as hosts
  // The first bad end ends all. Ranks are then started only when every host has answered: a host
  // that cannot be reached costs no start, and all that cannot are heard of.
  bool kill_on_bad_exit = true;
  int master_port = 0;
  std::map<std::string, std::string> env;  // for the ranks, beside what a login sets over there
  Argv ssh;                                // the words of each ssh before its host
  std::string ezpz;                        // its path on the hosts
  std::string folder;                      // where ranks start; must be there on every host
  Argv command;
};

// Runs to the end. Returns 0 when every rank returned 0, else the shell's code of the first that
// did not; kSshFailed when a host could not be reached or contact with it was lost before that.
//
// SIGTERM and SIGINT: passed on to the ranks; a second one ends them at once. SIGUSR1/2: passed on.
// If this process dies the far ends see their input end, and end their ranks.
inline constexpr int kSshFailed = 255;
int run_ssh(const SshRun&);

}  // namespace ezpz::supervise
