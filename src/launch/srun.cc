// The srun command line. Every flag is stated, because srun takes what is not stated from the batch
// job's environment, and the job asked for its whole allocation, not for this attempt.
#include <algorithm>
#include <iterator>

#include "base/hostlist.h"
#include "base/text.h"
#include "launch/plan.h"
#include "launch/planning.h"
#include "launch/srun_flags.h"

namespace ezpz::launch {
namespace {

// Variables of the job, or of the user's habits, that would change what our flags mean.
constexpr const char* neutralised[] = {
    "SLURM_CPUS_PER_GPU",    "SLURM_DISTRIBUTION",    "SLURM_DIST_PLANESIZE",
    "SLURM_EXCLUSIVE",       "SLURM_EXPORT_ENV",      "SLURM_GPUS",
    "SLURM_GPUS_PER_SOCKET", "SLURM_GPUS_PER_TASK",   "SLURM_HOSTFILE",
    "SLURM_KILL_BAD_EXIT",   "SLURM_LABELIO",         "SLURM_NO_KILL",
    "SLURM_NPROCS",          "SLURM_NTASKS",          "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_GPU",  "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_SOCKET",
    "SLURM_NTASKS_PER_TRES", "SLURM_SPREAD_JOB",      "SLURM_STDERRMODE",
    "SLURM_STDINMODE",       "SLURM_STDOUTMODE",      "SLURM_TASKS_PER_NODE",
    "SLURM_TIMELIMIT",       "SLURM_USE_MIN_NODES",   "SRUN_EXPORT_ENV",
};
// Ranks of an outer launcher: `ezpz rank` believes these before SLURM's own, and slurmstepd sets
// them anew where its MPI plugin speaks PMI.
constexpr const char* outer_ranks[] = {"OMPI_COMM_WORLD_RANK",
                                       "OMPI_COMM_WORLD_SIZE",
                                       "PALS_RANKID",
                                       "PMIX_RANK",
                                       "PMI_RANK",
                                       "PMI_SIZE"};
// With -c stated these would contradict it, or (SLURM_TRES_PER_TASK) make srun refuse to start.
constexpr const char* neutralised_with_cpus[] = {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK",
                                                 "SLURM_TRES_PER_TASK"};

// One of our flags, left out when the user gave one of `unless`.
struct OurFlag {
  std::string text;
  std::vector<std::string> unless;
};

// The path of the active hosts' file, or, where none could be written, the hosts themselves.
std::string nodelist(const Request& request) {
  if (request.hostfile_path.empty()) return compress_hostlist(spellings(request.hosts));
  // Without a '/' srun would take it for the name of a host.
  const bool has_slash = request.hostfile_path.find('/') != std::string::npos;
  return (has_slash ? "" : "./") + request.hostfile_path;
}

std::vector<OurFlag> our_flags(const Request& request) {
  const std::string hosts = std::to_string(request.hosts.size());
  std::vector<OurFlag> flags = {
      {"-u", {"unbuffered", "pty"}},
      // Says which ranks start where, and the step's id: the evidence needs both.
      {"--verbose", {"verbose", "quiet"}},
      // A nodelist is a floor, not a fence: fewer names than -N and SLURM picks the rest itself.
      {"-N" + hosts, {"nodes"}},
      {"-n" + std::to_string(request.ranks), {"ntasks"}},
  };
  // Where ranks do not fill the hosts evenly srun would only warn that it ignores this one.
  if (request.ranks == request.ranks_per_node * static_cast<int>(request.hosts.size())) {
    flags.push_back(
        {"--ntasks-per-node=" + std::to_string(request.ranks_per_node), {"ntasks-per-node"}});
  }
  flags.push_back({"--distribution=block", {"distribution"}});
  if (request.gpus_per_node > 0) {
    flags.push_back({"--gpus-per-node=" + std::to_string(request.gpus_per_node),
                     {"gpus-per-node", "gpus", "gpus-per-task", "gpus-per-socket", "gres",
                      "tres-per-task", "tres-per-node"}});
  }
  if (request.cpus_per_rank > 0) {
    flags.push_back({"-c" + std::to_string(request.cpus_per_rank),
                     {"cpus-per-task", "cpus-per-gpu", "tres-per-task"}});
  }
  if (!request.cpu_bind.empty()) {
    flags.push_back({"--cpu-bind=" + request.cpu_bind, {"cpu-bind"}});
  }
  flags.push_back({std::string("--kill-on-bad-exit=") + (request.kill_on_bad_exit ? "1" : "0"),
                   {"kill-on-bad-exit"}});
  flags.push_back({"--input=none", {"input", "pty"}});
  flags.push_back({"--nodelist=" + nodelist(request), {}});
  const std::vector<std::string> excluded = excluded_hosts(request);
  if (!excluded.empty()) flags.push_back({"--exclude=" + compress_hostlist(excluded), {}});
  if (request.overlap) flags.push_back({"--overlap", {"overlap"}});
  return flags;
}

std::optional<Error> refuse(const Request& request, const std::set<std::string>& given) {
  if (request.heterogeneous) {
    return Error{"heterogeneous jobs are not supported", "job " + request.job_id,
                 "submit the job with one set of resources"};
  }
  static const std::vector<std::pair<std::string, std::string>> ours = {
      {"nodelist", "give the hosts with --hostfile"},
      {"nodefile", "give the hosts with --hostfile"},
      {"exclude", "give --exclude to ezpz itself"},
      {"relative", "give the hosts with --hostfile"},
  };
  for (const auto& [name, hint] : ours) {
    if (given.count(name) == 0) continue;
    return Error{"ezpz chooses the hosts, so srun's own flag would undo a swap", "--" + name, hint};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> srun_job_variables() {
  std::vector<std::string> names(std::begin(neutralised), std::end(neutralised));
  names.insert(names.end(), std::begin(neutralised_with_cpus), std::end(neutralised_with_cpus));
  names.emplace_back("SLURM_GPUS_PER_NODE");
  return names;
}

Result<Plan> plan_srun(const Request& request) {
  if (const auto error = check_request(request)) return *error;
  const std::set<std::string> given = srun_flags_in(request.launcher_flags);
  if (const auto error = refuse(request, given)) return *error;

  Plan plan = start_plan("srun", request, slurm_node_order(request.hosts, request.allocation));
  plan.signals = SignalRoute::scancel;
  plan.argv = {"srun"};
  for (const OurFlag& flag : our_flags(request)) {
    if (!gave_any(given, flag.unless)) plan.argv.push_back(flag.text);
  }
  plan.argv.insert(plan.argv.end(), request.launcher_flags.begin(), request.launcher_flags.end());
  if (request.rank_env) {
    plan.argv.insert(plan.argv.end(), {request.self_path, "rank", "--"});
  }
  plan.argv.insert(plan.argv.end(), request.command.begin(), request.command.end());
  if (gave_any(given, {"nodes", "ntasks", "ntasks-per-node", "distribution", "spread-job"})) {
    plan.host_of_rank.clear();  // the user's layout: known when the step says it
  }

  EnvChanges env;
  for (const char* name : neutralised) env[name] = std::nullopt;
  for (const char* name : outer_ranks) env[name] = std::nullopt;
  if (request.cpus_per_rank > 0) {
    for (const char* name : neutralised_with_cpus) env[name] = std::nullopt;
  }
  if (request.gpus_per_node > 0) env["SLURM_GPUS_PER_NODE"] = std::nullopt;
  plan.env.merge(env);  // what start_plan() set, the user's own wishes among it, stays
  return plan;
}

}  // namespace ezpz::launch
