// mpiexec of HPE Cray's PALS (Aurora, Polaris, Sunspot). It reads the hostfile at each start and
// fills hosts in its order. The environment goes along whole (--envall), not on the command line.
#include <algorithm>

#include "base/text.h"
#include "launch/plan.h"
#include "launch/planning.h"

namespace ezpz::launch {
namespace {

const std::vector<std::string> host_flags = {"hostfile", "hosts", "host",
                                             "hostlist", "f",     "configfile"};

}  // namespace

Result<Plan> plan_pals(const Request& request) {
  if (const auto error = check_request(request)) return *error;
  const std::set<std::string> given = mpi_flags_in(request.launcher_flags);
  if (const auto error = refuse_host_flags(given, host_flags)) return *error;
  const std::vector<int> counts = filled_hosts(request);
  if (counts.back() == 0) {
    const auto used =
        request.hosts.size() - static_cast<size_t>(std::count(counts.begin(), counts.end(), 0));
    return Error{std::to_string(request.ranks) + " ranks, " +
                     std::to_string(request.ranks_per_node) + " a node, fill " +
                     std::to_string(used) + " of " + std::to_string(request.hosts.size()) +
                     " hosts: PALS would leave the others empty",
                 "", "give --nhosts " + std::to_string(used) + ", or -n and --ppn that divide"};
  }

  Plan plan = start_mpi_plan("pals", request, counts);
  plan.argv = {request.program.empty() ? "mpiexec" : request.program};
  if (!gave_any(given, {"envall", "envnone", "envlist"})) plan.argv.emplace_back("--envall");
  if (!gave_any(given, {"line-buffer", "no-line-buffer"})) plan.argv.emplace_back("--line-buffer");
  if (!gave_any(given, {"n", "np"})) {
    plan.argv.push_back("--np=" + std::to_string(request.ranks));
  }
  if (!gave_any(given, {"ppn"})) {
    plan.argv.push_back("--ppn=" + std::to_string(request.ranks_per_node));
  }
  if (gave_any(given, {"n", "np", "ppn", "rankmap"})) {
    plan.host_of_rank.clear();  // the user's layout
    plan.env["EZPZ_RANKS_PER_NODE"] = std::nullopt;
  }
  plan.argv.push_back(request.hostfile_path.empty() ? "--hosts=" + join(plan.host_order, ",")
                                                    : "--hostfile=" + request.hostfile_path);
  if (!request.cpu_bind.empty() && !gave_any(given, {"cpu-bind", "cc", "depth", "d"})) {
    plan.argv.push_back("--cpu-bind=" + request.cpu_bind);
  }
  if (request.label && !gave_any(given, {"label", "l", "no-label"})) {
    plan.argv.emplace_back("--label");
  }
  add_mpi_command(plan, request);
  return plan;
}

}  // namespace ezpz::launch
