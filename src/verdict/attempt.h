// What one attempt left behind: everything a verdict may rest on. Built by failover/ while the job
// runs and by postmortem from a log and the journal; the verdict cannot tell the two apart.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit.h"
#include "base/fact.h"
#include "evidence/progress.h"

namespace ezpz::verdict {

// Who ended the attempt.
enum class Ending {
  exited,     // the launcher ended by itself
  watchdog,   // no output for too long: we ended it
  user_stop,  // SIGINT, SIGTERM or SIGHUP to ezpz: we ended it
  guard,      // it ran on another network than was required: we ended it
};
std::string_view to_string(Ending);
bool parse(std::string_view word, Ending* out);

// What the scheduler said at the end; each part may be unknown, and unknown is not "healthy".
struct SchedulerView {
  std::optional<double> end_time_s;      // the job's end, wall clock
  std::optional<std::string> job_state;  // "RUNNING", "COMPLETING", "TIMEOUT", "CANCELLED", ...
  std::map<std::string, std::string> node_states;  // host key -> "IDLE", "DOWN*", "DRAINING", ...
  std::vector<std::string> trouble;                // queries that failed, one line each
};

// Which network the ranks' collectives should use, and what to do when they do not.
struct NetworkWish {
  std::string expected;   // by the machine's table, or as required; empty: whatever it is, is right
  bool required = false;  // --require-net
  std::string remedy;     // "module load nccl/2.24.3"
  std::string price;      // of doing without: "8.3 times slower between nodes"
};

struct AttemptRecord {
  int attempt = 1;  // 1-based
  // Host keys (base/node.h), in rank order of hosts. Only these can be convicted: who replays a
  // bare log without knowing them fills in the hosts that the log itself places ranks on or names,
  // and says so: then "the only host" is only the only one that was mentioned.
  std::vector<std::string> active;
  bool active_known = true;
  // Host keys, as the launcher really placed the ranks, else as planned.
  std::map<int, std::string> host_of_rank;
  std::vector<std::string> retired_earlier;  // host keys
  std::vector<Fact> facts;                   // in the order they became known; hosts as printed
  Exit exit;
  bool exit_known = true;  // false: a bare log, and nobody said what the launcher returned
  Ending ending = Ending::exited;
  evidence::Progress progress;
  SchedulerView scheduler;
  double started_s = 0;  // wall clock
  double ended_s = 0;
  NetworkWish network;
  bool user_asked_stop_by_signal = false;  // SIGUSR1/SIGUSR2 came: the end of the job is near
};

}  // namespace ezpz::verdict
