// The mpiexec of MPICH and of what descends from it (Intel MPI). Seen of MPICH 4.0.2:
//  - SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 to mpiexec reach every rank at once, and nothing follows:
//    ranks that ignore SIGTERM live on, however often it comes. SIGKILL to mpiexec ends them all
//    within a tenth of a second: a proxy that loses its connection ends its ranks.
//  - The first rank that dies of a signal (SIGTERM too) makes it end all others at once. A rank
//  that
//    exits with an error ends none, and is told by the exit code alone.
//  - Variables travel over the proxies' sockets: no value is on any command line.
#include "base/text.h"
#include "launch/counts.h"
#include "launch/plan.h"
#include "launch/planning.h"

namespace ezpz::launch {
namespace {

const std::vector<std::string> host_flags = {"f",    "hostfile", "machinefile", "machine",
                                             "host", "hosts",    "hostlist",    "configfile"};
// With -genvlist MPICH 4.0.2 does not look at the last variable of its environment (not of the
// list): this one is there to be that. Changes are appended in the order of their names.
constexpr const char* last_variable = "zzzz_ezpz_last";
const std::vector<std::string> count_flags = {"n", "np", "ppn", "perhost", "rr", "gr"};

// "a:2": ranks each; with the same number everywhere -ppn says it.
std::string with_count(const std::string& host, int count, bool even) {
  return even ? host : host + ":" + std::to_string(count);
}

}  // namespace

Result<Plan> plan_hydra(const Request& request) {
  if (const auto error = check_request(request)) return *error;
  const std::set<std::string> given = mpi_flags_in(request.launcher_flags);
  if (const auto error = refuse_host_flags(given, host_flags)) return *error;

  const std::vector<int> counts =
      ranks_on_hosts(request.ranks, static_cast<int>(request.hosts.size()));
  Plan plan = start_mpi_plan("hydra", request, counts);
  plan.hard_signal = SIGKILL;
  plan.silent_exit = true;
  plan.argv = {request.program.empty() ? "mpiexec" : request.program};
  const bool even = is_even(request);
  std::vector<std::string> lines;
  for (size_t i = 0; i < counts.size(); ++i) {
    lines.push_back(with_count(plan.host_order[i], counts[i], even));
  }
  if (request.hostfile_path.empty()) {
    plan.argv.insert(plan.argv.end(), {"-hosts", join(lines, ",")});
  } else if (even) {
    plan.argv.insert(plan.argv.end(), {"-f", request.hostfile_path});
  } else {
    const std::string path = request.hostfile_path + ".counts";
    plan.files.push_back({path, join(lines, "\n") + "\n"});
    plan.argv.insert(plan.argv.end(), {"-machinefile", path});
  }
  if (gave_any(given, count_flags)) {
    plan.host_of_rank.clear();  // the user's layout
    plan.env["EZPZ_RANKS_PER_NODE"] = std::nullopt;
  }
  if (even && !gave_any(given, {"ppn", "perhost", "rr", "gr"})) {
    plan.argv.insert(plan.argv.end(), {"-ppn", std::to_string(request.ranks_per_node)});
  }
  if (!gave_any(given, {"n", "np"})) {
    plan.argv.insert(plan.argv.end(), {"-n", std::to_string(request.ranks)});
  }
  if (!request.cpu_bind.empty() && !gave_any(given, {"bind-to", "binding"})) {
    plan.argv.insert(plan.argv.end(), {"-bind-to", request.cpu_bind});
  }
  // Inside a job Intel's mpiexec would lay ranks out as the scheduler says, whatever -ppn is.
  if (request.intel_mpi) plan.env.emplace("I_MPI_JOB_RESPECT_PROCESS_PLACEMENT", "0");
  if (!gave_any(given, {"genvall", "genvnone", "genvlist", "envall", "envnone", "envlist"})) {
    plan.argv.insert(plan.argv.end(), {"-genvlist", join(names_for_ranks(plan, request), ",")});
    plan.env[last_variable] = "1";
  }
  add_mpi_command(plan, request);
  return plan;
}

}  // namespace ezpz::launch
