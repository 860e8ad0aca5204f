// `ezpz doctor-node`: what one node says of itself, as one line of JSON. ezpz doctor starts it on
// each.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/site_view.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "doctor/node_sight.h"

namespace ezpz::app {

int run_doctor_node(const Words& words) {
  std::string machine;
  std::string machines_dir;
  std::string issues_dir;
  doctor::NodeRequest request;
  std::optional<long> nodes;
  FlagTable table(
      "ezpz doctor-node [flags] [-- CMD ...]",
      "Looks at this node: GPUs, limits, the libraries and the Python of the job. Prints "
      "one line of JSON. Internal: ezpz doctor uses it.");
  table.add_string({"--machine"}, "NAME", "Take this machine's table.", &machine);
  table.add_string({"--machines-dir"}, "DIR", "Machine tables that replace or add to the built-in.",
                   &machines_dir);
  table.add_string({"--known-issues-dir"}, "DIR",
                   "Known issues that replace or add to the built-in.", &issues_dir);
  table.add_int({"--nodes"}, "N", "How many nodes the job is to run on.", 1, &nodes);
  table.add_string({"--python"}, "PATH", "Ask this interpreter.", &request.python);
  table.add_seconds({"--patience"}, "S", "How long a tool or a file system may take.",
                    &request.patience_s);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> command = table.parse(words);
  if (!command) return usage_error(command.error().one_line());
  request.command = *command;
  Result<std::vector<doctor::KnownIssue>> issues = doctor::load_known_issues(issues_dir);
  if (!issues) return usage_error(issues.error().one_line());
  Loop loop;
  const Result<SiteView> view = look_around(loop, machine, machines_dir, site::Depth::environment);
  if (!view) return usage_error(view.error().one_line());

  const doctor::NodeSight sight = doctor::look_at_node(loop, request);
  doctor::NodeContext context;
  context.machine = view->machine.machine;
  context.command = request.command;
  context.nodes = static_cast<int>(nodes.value_or(0));
  context.in_job = view->job.in_job();
  context.issues = *std::move(issues);
  const std::vector<doctor::Finding> findings = doctor::check_node(sight, context);
  Json list = Json::array();
  for (const doctor::Finding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"health", doctor::to_string(finding.health)},
                    {"why", finding.why},
                    {"remedy", finding.remedy},
                    {"reference", finding.reference}});
  }
  const Json json = {{"node", sight.hostname}, {"findings", list}};
  write_all(1, dump(json) + "\n");
  return doctor::worst(findings) == doctor::Health::error ? 1 : 0;
}

}  // namespace ezpz::app
