// Which scheduler runs this job and what it knows: the one interface for the loop, `launch` and
// `info`. Environment first, questions second; each question is bounded and may fail.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "site/environment.h"
#include "site/job.h"
#include "site/slurm.h"

namespace ezpz::site {

enum class SchedulerKind { none, slurm, pbs };
std::string_view to_string(SchedulerKind);

// Questions a scheduler can be asked while a job runs: argv builders for start_helper() and readers
// of the answers. A null entry cannot be asked there.
struct Scheduler {
  SchedulerKind kind;
  // Whoever answers about a job, best first; empty: nobody does.
  std::span<const JobSource> job_sources;
  Argv (*my_jobs_query)(const std::string& user);
  std::vector<std::string> (*read_my_jobs)(std::string_view output);
  Argv (*nodes_query)(const std::vector<std::string>& hosts);
  std::map<std::string, std::string> (*read_nodes)(std::string_view output);
  Argv (*steps_query)(const std::string& job_id);
  std::vector<Step> (*read_steps)(std::string_view output);
  // A host that is lost leaves the job's list of hosts (SLURM); or it stays there, and only the
  // node's own state tells (PBS).
  bool lost_hosts_leave_the_job;
  // A job that is being ended has a state that says so, and often why (SLURM); or it looks like one
  // that runs until it is gone, and only the clock tells (PBS).
  bool state_tells_the_end;
};
const Scheduler& scheduler(SchedulerKind);

// How long one question may take before it counts as unanswered.
inline constexpr double query_timeout_s = 10;
// The same for discover(), which somebody waits for. After one question without an answer in time
// the others are not asked: the scheduler does not answer.
inline constexpr double discovery_timeout_s = 4;
inline constexpr double name_lookup_timeout_s = 1;

// May ranks be started on a node in this state? DRAINING, DRAINED and PBS's "offline" are not a
// fault of an active host, but such a spare is not taken into use: ask is_draining() for that.
bool is_usable(std::string_view node_state);
// What we call the state of a host the scheduler has taken out of the job: never usable.
inline constexpr std::string_view kNotInJob = "NOT_IN_JOB";
bool is_draining(std::string_view node_state);

enum class Depth {
  environment,  // ask only for what the environment leaves open: nothing, inside a normal job
  job,          // ask about the job too and prefer the answer: before a failover run
  everything,   // ask all there is to ask: `info`
};

struct Discovery {
  SchedulerKind scheduler = SchedulerKind::none;
  std::string job_id;              // empty: outside any job
  std::vector<std::string> hosts;  // of the job, scheduler's spelling and order; empty: unknown
  // The same as each of the two tells it; empty: not told.
  std::vector<std::string> environment_hosts;
  std::vector<std::string> scheduler_hosts;
  // Those of them that the scheduler would start nothing on, or nothing new: host -> state. Only
  // with Depth::everything.
  std::map<std::string, std::string> unfit_hosts;
  size_t states_known = 0;                // of so many hosts a state was told
  std::vector<std::string> running_jobs;  // of this user; only with Depth::everything
  std::string node_file;                  // the scheduler's own file, where it has one
  std::optional<double> end_time_s;       // wall clock
  std::optional<std::string> job_state;
  JobPhase job_phase = JobPhase::unknown;
  bool job_is_unknown = false;  // the scheduler answered that there is no such job
  std::optional<bool> no_kill;  // does the job outlive a lost node? Often nobody can say
  bool heterogeneous = false;
  std::string cluster;
  int cpus_per_node = 0;  // smallest over the job's nodes; 0: unknown
  int cpus_per_task = 0;  // what the job was submitted with; 0: not given
  int gpus_per_node = 0;  // 0: none or unknown
  std::string user;
  std::map<std::string, std::string> why;  // field name -> one sentence
  std::vector<std::string> trouble;        // questions that failed, one line each

  [[nodiscard]] bool in_job() const { return !job_id.empty(); }
  [[nodiscard]] std::optional<double> time_left_s(double now_wall_s) const;
};

// The names this host has. The full one comes from `getent hosts`, bounded: the resolver of a
// static binary is not usable.
std::string own_hostname();
std::string own_fqdn(const std::string& hostname, const AskHelper&, std::string* trouble);

// program_exists answers whether a program is in PATH (find_program(), or a table in tests).
using ProgramExists = std::function<bool(const std::string&)>;
// hostname tells which of the user's running jobs this process is in when the environment does not.
Discovery discover(const Environment&, const AskHelper&, const ProgramExists&, Depth,
                   const std::string& hostname = own_hostname());

}  // namespace ezpz::site
