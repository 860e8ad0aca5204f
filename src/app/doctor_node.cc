// `ezpz doctor-node`: what one node says of itself, as one line of JSON; with --report what doctor
// asks of each node through a launcher. The looking is then done by a second process, which may be
// given up: a file system that hangs costs the answer about it, not the node's.
#include "app/doctor_node.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/site_view.h"
#include "app/version.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/text.h"
#include "doctor/look_facts.h"
#include "doctor/look_folder.h"
#include "doctor/node_report.h"
#include "doctor/node_sight.h"
#include "doctor/wire.h"
#include "site/machine.h"

namespace ezpz::app {
namespace {

// The outer process must answer within the time even when the inner one does not.
constexpr double kMargin_s = 1;

struct NodeAnswer {
  std::string hostname;
  std::vector<doctor::Finding> findings;
};

Result<NodeAnswer> look_and_check(Loop& loop, const DoctorNodeRequest& request) {
  Result<std::vector<doctor::KnownIssue>> issues =
      doctor::load_known_issues(request.known_issues_dir);
  if (!issues) return issues.error();
  Result<SiteView> view =
      look_around(loop, request.machine, request.machines_dir, site::Depth::environment);
  if (!view) return view.error();
  doctor::NodeRequest look;
  look.command = request.command;
  look.python = request.python;
  look.patience_s = request.patience_s;
  const doctor::NodeSight sight = doctor::look_at_node(loop, look);
  doctor::NodeContext context;
  context.machine = std::move(view->machine.machine);
  context.command = request.command;
  context.nodes = static_cast<int>(request.nodes);
  context.in_job = view->job.in_job() || !request.job_id.empty();
  context.issues = *std::move(issues);
  return NodeAnswer{sight.hostname, doctor::check_node(sight, context)};
}

std::vector<doctor::Finding> node_findings(Loop& loop, const DoctorNodeRequest& request) {
  Result<NodeAnswer> answer = look_and_check(loop, request);
  if (answer) return std::move(answer->findings);
  return {{"node-look", doctor::Health::unknown,
           "looking at this node failed: " + printable(answer.error().one_line()),
           "do the nodes see the folders that were given?", ""}};
}

// By hand, on one node.
int tell_this_node(Loop& loop, const DoctorNodeRequest& request) {
  const Result<NodeAnswer> answer = look_and_check(loop, request);
  if (!answer) return usage_error(answer.error().one_line());
  Json findings = Json::array();
  for (const doctor::Finding& finding : answer->findings) {
    findings.push_back(doctor::to_json(finding));
  }
  write_all(1, dump({{"node", answer->hostname}, {"findings", std::move(findings)}}) + "\n");
  return doctor::worst(answer->findings) == doctor::Health::error ? 1 : 0;
}

std::string looked(Loop& loop, const DoctorNodeRequest& request) {
  const AskHelper ask = [&loop](const Argv& argv, double timeout_s) {
    return run_helper(loop, argv, timeout_s);
  };
  if (!request.folder.empty()) {
    return doctor::format_folder(doctor::look_at_folder(request.folder, ask));
  }
  doctor::FactsRequest facts;
  facts.node = request.node;
  facts.job_id = request.job_id;
  facts.names = request.resolve;
  facts.paths = request.see;
  facts.version = std::string(kVersion);
  doctor::NodeReport report;
  report.facts = doctor::look_at_facts(facts, ask);
  report.findings = node_findings(loop, request);
  return doctor::format_report(report);
}

std::string answer(Loop& loop, const DoctorNodeRequest& request) {
  const double began_s = wall_s();
  DoctorNodeRequest inner = request;
  inner.inner = true;
  const double patience_s = std::max(0.5, request.timeout_s - kMargin_s);
  const HelperResult result = run_helper(loop, doctor_node_argv(self_path(), inner), patience_s);
  const std::vector<std::string> payloads = doctor::read_wire(result.out);
  doctor::NodeReport report;
  std::optional<doctor::NodeReport> seen;
  if (!payloads.empty()) seen = doctor::parse_report(payloads[0]);
  if (seen) {
    report = std::move(*seen);
  } else {
    report.facts.node = request.node.empty() ? doctor::own_node_name() : request.node;
    report.findings.push_back(
        {"node-look", doctor::Health::unknown,
         result.timed_out
             ? fmt::format("looking at this node did not end within {:.0f} s: a file system or a "
                           "driver hangs?",
                           patience_s)
             : "looking at this node failed: " + printable(result.trouble),
         "look there by hand: df, nvidia-smi, dmesg", ""});
  }
  report.facts.began_s = began_s;
  report.facts.answered_s = wall_s();
  return doctor::format_report(report);
}

}  // namespace

Argv doctor_node_argv(const std::string& self_path, const DoctorNodeRequest& request) {
  Argv argv{self_path, "doctor-node", "--report",
            fmt::format("--timeout={:.1f}", request.timeout_s),
            fmt::format("--patience={:.1f}", request.patience_s)};
  const auto add = [&argv](const char* flag, const std::string& value) {
    if (!value.empty()) argv.push_back(flag + value);
  };
  add("--node=", request.node);
  add("--job=", request.job_id);
  for (const std::string& name : request.resolve) add("--resolve=", name);
  for (const std::string& path : request.see) add("--see=", path);
  add("--machine=", request.machine);
  add("--machines-dir=", request.machines_dir);
  add("--known-issues-dir=", request.known_issues_dir);
  add("--python=", request.python);
  if (request.nodes > 0) add("--nodes=", std::to_string(request.nodes));
  add("--folder=", request.folder);
  if (request.inner) argv.emplace_back("--inner");
  if (!request.command.empty()) {
    argv.emplace_back("--");
    argv.insert(argv.end(), request.command.begin(), request.command.end());
  }
  return argv;
}

int run_doctor_node(const Words& words) {
  DoctorNodeRequest request;
  std::optional<long> nodes;
  bool report = false;
  FlagTable table(
      "ezpz doctor-node [flags] [-- CMD ...]",
      "Looks at this node: GPUs, limits, the libraries and the Python of the job. Prints "
      "one line of JSON. Internal: ezpz doctor uses it.");
  table.add_string({"--node"}, "NAME", "Who this node is.", &request.node);
  table.add_string({"--job"}, "ID", "The job this node is looked at for.", &request.job_id);
  const auto one_more = [](std::vector<std::string>* list) {
    return [list](std::string_view text) {
      list->emplace_back(text);
      return success();
    };
  };
  table.add({{"--resolve"}, "NAME", "Look this host up.", one_more(&request.resolve)});
  table.add({{"--see"}, "PATH", "Is this there?", one_more(&request.see)});
  table.add_string({"--machine"}, "NAME", "Whose table holds.", &request.machine);
  table.add_string({"--machines-dir"}, "DIR", "Machine tables.", &request.machines_dir);
  table.add_string({"--known-issues-dir"}, "DIR",
                   "Known issues that replace or add to the built-in.", &request.known_issues_dir);
  table.add_string({"--python"}, "PATH", "Ask this interpreter.", &request.python);
  table.add_seconds({"--patience"}, "S", "How long a tool or a file system may take.",
                    &request.patience_s);
  table.add_switch({"--report"}, "Answer for ezpz doctor, with what it compares among nodes.",
                   &report);
  table.add_int({"--nodes"}, "N", "Of the job.", 0, &nodes);
  table.add_seconds({"--timeout"}, "S", "For the answer.", &request.timeout_s);
  table.add_string({"--folder"}, "PATH", "Only look at this folder.", &request.folder);
  table.add_switch({"--inner"}, "Look, and be given up if that hangs.", &request.inner);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return usage_error(rest.error().one_line());
  request.command = *rest;
  request.nodes = nodes.value_or(0);
  Loop loop;
  if (!report) return tell_this_node(loop, request);
  const std::string text = request.inner ? looked(loop, request) : answer(loop, request);
  write_all(1, doctor::write_wire(text, doctor::wire_id()));
  return 0;
}

}  // namespace ezpz::app
