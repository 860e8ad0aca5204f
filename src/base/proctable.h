// The process table, read from /proc: who is whose child, in which session, started how.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ezpz {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';          // 'D' is uninterruptible, 'Z' a zombie
  uint64_t start_ticks = 0;  // since boot; with the pid it names a process for good
};

std::optional<Process> read_process(pid_t);
std::vector<Process> list_processes();

// All processes below root (not root itself), zombies left out.
std::vector<Process> descendants(const std::vector<Process>& table, pid_t root);

// The environment a process was started with; empty when it may not be read.
std::map<std::string, std::string> environment_of(pid_t);

// SIGKILL to the process, its session and all below it: what an mpiexec starts (its rsh) leads a
// session of its own.
void kill_family(pid_t root);

// Ends everything below this process, whatever starts anew meanwhile; for a subreaper, who inherits
// what its children left behind. A process in uninterruptible sleep is left after limit_s: what is
// still there is returned.
std::vector<Process> end_descendants(double limit_s);

// Signals every process of the session; how many got it.
int kill_session(pid_t session, int signal);

}  // namespace ezpz
