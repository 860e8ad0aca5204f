// `ezpz local-run`: the local launcher as a process of its own, what srun is to a cluster. Started
// by `ezpz launch`; its flags are the contract with launch/local.cc.
#include <numeric>

#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"
#include "launch/counts.h"
#include "supervise/local_nodes.h"

namespace ezpz::app {

int run_local_run(const Words& words) {
  supervise::LocalRun run;
  std::optional<long> ranks;
  std::optional<long> ranks_per_node;
  std::optional<long> attempt;
  std::optional<long> port;
  run.kill_on_bad_exit = false;
  FlagTable table(
      "ezpz local-run --hosts=H,... --ranks=N --ranks-per-node=P [flags] -- CMD ...",
      "Starts ranks on simulated nodes of this machine. Internal: ezpz launch uses it.");
  table.add_list({"--hosts"}, "H,...", "Node names, in rank order.", &run.hosts);
  table.add_int({"--ranks"}, "N", "Ranks in all.", 1, &ranks);
  table.add_int({"--ranks-per-node"}, "N", "Most ranks on a node.", 1, &ranks_per_node);
  table.add_int({"--attempt"}, "N", "For the record.", 1, &attempt);
  table.add_int({"--master-port"}, "N", "Rendezvous port.", 0, &port);
  table.add_switch({"--kill-on-bad-exit"}, "The first bad end ends all.", &run.kill_on_bad_exit);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> command = table.parse(words);
  if (!command) return usage_error(command.error().one_line());
  if (command->empty() || run.hosts.empty() || !ranks) return usage_error(table.help());
  run.command = *command;
  run.master_port = static_cast<int>(port.value_or(0));
  run.ranks_on_host =
      launch::ranks_on_hosts(static_cast<int>(*ranks), static_cast<int>(run.hosts.size()));
  return supervise::run_local_nodes(run);
}

}  // namespace ezpz::app
