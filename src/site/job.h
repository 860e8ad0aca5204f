// What a scheduler says of a job, in words that do not depend on which scheduler it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"

namespace ezpz::site {

// The letters and words of a state mean different things to different schedulers (PBS's "F" is a
// job that is over, SLURM's one that failed): what the code asks for is this.
enum class JobPhase { unknown, waiting, running, ending };

struct Job {
  std::string id;
  std::string state;  // the scheduler's own word: "RUNNING", "TIMEOUT"; "R", "E"
  JobPhase phase = JobPhase::unknown;
  std::vector<std::string> hosts;    // in the scheduler's order
  std::optional<double> end_time_s;  // wall clock; nothing when unlimited or unknown
  std::optional<bool> no_kill;       // does it outlive a lost node?
  bool heterogeneous = false;
  std::string user;
};

struct Step {
  std::string id;     // "57520568.0"; "57520568.batch" and ".extern" are left out
  std::string state;  // "RUNNING", "COMPLETING"
  std::vector<std::string> hosts;
};

// One way to ask about a job, and how its answer reads.
struct JobSource {
  std::string_view name;
  Argv (*query)(const std::string& job_id);
  Result<Job> (*read)(std::string_view output);
};

}  // namespace ezpz::site
