// Simulated nodes on this machine: ezpz starts itself as the launcher process.
#include "base/text.h"
#include "launch/plan.h"
#include "launch/planning.h"

namespace ezpz::launch {

Result<Plan> plan_local(const Request& request) {
  if (const auto error = check_request(request)) return *error;
  if (!request.launcher_flags.empty()) {
    return Error{"the local launcher takes no flags of its own", request.launcher_flags[0],
                 "put '--' only once, before the command"};
  }
  if (request.self_path.empty()) return Error{"the path of ezpz is unknown", "", ""};
  Plan plan = start_plan("local", request, request.hosts);
  plan.master_addr = "127.0.0.1";  // simulated nodes have no addresses of their own
  plan.argv = {request.self_path,
               "local-run",
               "--hosts=" + join(plan.host_order, ","),
               "--ranks=" + std::to_string(request.ranks),
               "--ranks-per-node=" + std::to_string(request.ranks_per_node),
               "--attempt=" + std::to_string(request.attempt)};
  if (request.master_port > 0) {
    plan.argv.push_back("--master-port=" + std::to_string(request.master_port));
  }
  if (request.kill_on_bad_exit) plan.argv.emplace_back("--kill-on-bad-exit");
  plan.argv.emplace_back("--");
  plan.argv.insert(plan.argv.end(), request.command.begin(), request.command.end());
  return plan;
}

}  // namespace ezpz::launch
