// What `ezpz node-check` does on a node: is the node alive enough to start a program, write and
// read its tmp, and is anything of an earlier attempt still running here? Optionally ends what is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"

namespace ezpz::probe {

struct CheckRequest {
  std::string node;  // who we are, as the caller spells it; empty: EZPZ_NODE, SLURMD_NODENAME
                     // or the host name
  // Look for survivors of attempts whose id begins so ("57.1a2b." is every attempt of a run, which
  // is what a fence asks: a benched host may still hold a rank of an older one). Empty: do not
  // look.
  std::string attempt_id;
  bool clear = false;  // end the survivors (SIGKILL)
  double wait_s = 5;   // for them to be gone
  int signal = 0;      // only send this to the ranks, and tell nothing of survivors
};

struct CheckReport {
  std::string node;
  bool tmp_ok = false;
  std::vector<int> survivors;  // pids still there at the end, zombies not counted
  int cleared = 0;             // ended by us
  [[nodiscard]] bool healthy() const { return tmp_ok && survivors.empty(); }
};

CheckReport check_node(const CheckRequest&);

// One line, and back. The line may stand anywhere in a launcher's output.
std::string format_report(const CheckReport&);
std::optional<CheckReport> parse_report(std::string_view line);

}  // namespace ezpz::probe
