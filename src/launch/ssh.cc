// Hosts without any MPI: ezpz starts itself as the launcher process, which runs an ssh for each
// host and ezpz at the far end of it (supervise/ssh_run.h). Values of variables go neither onto
// this command line nor onto ssh's: the names stand here, the values are in the launcher's
// environment and travel over ssh's input.
#include "base/text.h"
#include "launch/counts.h"
#include "launch/plan.h"
#include "launch/planning.h"
#include "launch/ssh_words.h"

namespace ezpz::launch {

Result<Plan> plan_ssh(const Request& request) {
  if (const auto error = check_request(request)) return *error;
  if (request.self_path.empty() || request.self_path[0] != '/') {
    return Error{"the path of ezpz on the hosts is unknown", request.self_path, ""};
  }
  if (!request.cpu_bind.empty()) {
    return Error{"the ssh launcher does not bind CPUs", "--cpu-bind", "leave it out"};
  }
  if (const auto error = check_ssh_flags(request.launcher_flags)) return *error;
  for (const Node& host : request.hosts) {
    if (const auto error = check_ssh_host(host.spelled)) return *error;
  }
  const std::vector<int> counts =
      ranks_on_hosts(request.ranks, static_cast<int>(request.hosts.size()));
  Plan plan = start_mpi_plan("ssh", request, counts);
  plan.argv = {request.self_path, "ssh-run", "--hosts=" + join(plan.host_order, ","),
               "--ranks=" + std::to_string(request.ranks),
               "--attempt=" + std::to_string(request.attempt)};
  if (request.master_port > 0) {
    plan.argv.push_back("--master-port=" + std::to_string(request.master_port));
  }
  if (request.kill_on_bad_exit) plan.argv.emplace_back("--kill-on-bad-exit");
  plan.argv.push_back("--env=" + join(names_for_ranks(plan, request), ","));
  for (const std::string& word : ssh_words(request.program, request.launcher_flags)) {
    plan.argv.push_back("--ssh=" + word);
  }
  plan.argv.emplace_back("--");
  plan.argv.insert(plan.argv.end(), request.command.begin(), request.command.end());
  return plan;
}

}  // namespace ezpz::launch
