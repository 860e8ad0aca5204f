// mpirun of Open MPI 4 (ORTE) and 5 (PRRTE). Seen of 4.1.4:
//  - SIGTERM to mpirun is a kill in two seconds: each rank gets SIGCONT, a second later SIGTERM,
//    another second later SIGKILL. (odls_base_sigkill_timeout stretches both waits, the one before
//    SIGTERM as well.) So ranks are asked to stop by a command of our own beside it, and mpirun
//    gets SIGTERM only when the grace is over.
//  - SIGUSR1 and SIGUSR2 reach the ranks. SIGKILL to mpirun ends the ranks within two seconds.
//  - Variables given by name travel over the daemons' sockets: no value is on any command line.
#include "base/text.h"
#include "launch/counts.h"
#include "launch/plan.h"
#include "launch/planning.h"

namespace ezpz::launch {
namespace {

const std::vector<std::string> host_flags = {"hostfile", "machinefile", "default-hostfile", "H",
                                             "host",     "app",         "rankfile",         "rf"};
const std::vector<std::string> count_flags = {"n",      "np",     "c",          "npernode",
                                              "N",      "map-by", "ppr",        "pernode",
                                              "bynode", "byslot", "npersocket", "rank-by"};

}  // namespace

Result<Plan> plan_openmpi(const Request& request) {
  if (const auto error = check_request(request)) return *error;
  const std::set<std::string> given = mpi_flags_in(request.launcher_flags);
  if (const auto error = refuse_host_flags(given, host_flags)) return *error;

  const std::vector<int> counts =
      ranks_on_hosts(request.ranks, static_cast<int>(request.hosts.size()));
  Plan plan = start_mpi_plan("openmpi", request, counts);
  plan.argv = {request.program.empty() ? "mpirun" : request.program};
  if (request.as_root && !gave_any(given, {"allow-run-as-root"})) {
    plan.argv.emplace_back("--allow-run-as-root");
  }
  // A host without a count has as many slots as cores, or one, by version.
  std::string in_file;
  std::vector<std::string> in_argv;
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::string count = std::to_string(counts[i]);
    in_file += plan.host_order[i] + " slots=" + count + "\n";
    in_argv.push_back(plan.host_order[i] + ":" + count);
  }
  if (request.hostfile_path.empty()) {
    plan.argv.insert(plan.argv.end(), {"--host", join(in_argv, ",")});
  } else {
    const std::string path = request.hostfile_path + ".slots";
    plan.files.push_back({path, in_file});
    plan.argv.insert(plan.argv.end(), {"--hostfile", path});
  }
  if (gave_any(given, count_flags)) {
    plan.host_of_rank.clear();  // the user's layout
    plan.env["EZPZ_RANKS_PER_NODE"] = std::nullopt;
  } else {
    plan.argv.emplace_back("--map-by");
    plan.argv.push_back(is_even(request) ? "ppr:" + std::to_string(request.ranks_per_node) + ":node"
                                         : "slot");
  }
  if (!gave_any(given, {"n", "np", "c"})) {
    plan.argv.insert(plan.argv.end(), {"-np", std::to_string(request.ranks)});
  }
  // Its own default puts a rank of a small job on one core, its data loaders with it.
  if (!gave_any(given, {"bind-to", "cpu-set", "cpu-list", "bind-to-core", "bind-to-none"})) {
    plan.argv.insert(plan.argv.end(),
                     {"--bind-to", request.cpu_bind.empty() ? "none" : request.cpu_bind});
  }
  for (const std::string& name : names_for_ranks(plan, request)) {
    plan.argv.insert(plan.argv.end(), {"-x", name});
  }
  add_mpi_command(plan, request);

  if (request.attempt_id.empty() || request.self_path.empty()) return plan;
  const Result<Argv> stop = beside_argv(
      plan_openmpi, request, request.hosts,
      {request.self_path, "node-check", "--signal=15", "--attempt-id=" + request.attempt_id});
  if (!stop) return stop.error();
  plan.signals = SignalRoute::command;
  plan.signal_command = *stop;
  return plan;
}

}  // namespace ezpz::launch
