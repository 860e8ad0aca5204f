// `ezpz node-check`: what the probe and the fence start on each node.
#include "probe/node_check.h"
#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"

namespace ezpz::app {

int run_node_check(const Words& words) {
  probe::CheckRequest request;
  FlagTable table("ezpz node-check [flags]",
                  "Tells whether this node can start a program and write its tmp, and what is left "
                  "of an attempt on it. Internal: ezpz launch uses it.");
  table.add_string({"--node"}, "NAME", "Who this node is.", &request.node);
  table.add_string({"--attempt-id"}, "ID", "Look for processes of this attempt.",
                   &request.attempt_id);
  table.add_seconds({"--wait"}, "S", "How long they have to be gone.", &request.wait_s);
  table.add_switch({"--clear"}, "End them.", &request.clear);
  std::optional<long> signal;
  table.add_int({"--signal"}, "N", "Only send this signal to the attempt's ranks.", 1, &signal);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return usage_error(rest.error().one_line());
  request.signal = static_cast<int>(signal.value_or(0));
  const probe::CheckReport report = probe::check_node(request);
  write_all(1, probe::format_report(report) + "\n");
  return report.healthy() ? 0 : 1;
}

}  // namespace ezpz::app
