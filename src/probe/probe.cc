#include "probe/probe.h"

#include <fmt/core.h>

#include "base/text.h"

namespace ezpz::probe {
namespace {

Argv check_command(const std::string& self_path, const CheckRequest& check) {
  Argv argv{self_path, "node-check"};
  if (!check.node.empty()) argv.push_back("--node=" + check.node);
  if (!check.attempt_id.empty()) {
    argv.push_back("--attempt-id=" + check.attempt_id);
    argv.push_back(fmt::format("--wait={:.1f}", check.wait_s));
    if (check.clear) argv.push_back("--clear");
  }
  return argv;
}

std::vector<Said> reports_in(const std::string& output) {
  std::vector<Said> found;
  for (const std::string& line : split_lines(output)) {
    if (const auto report = parse_report(line)) found.push_back({report->node, line});
  }
  return found;
}

}  // namespace

Argv srun_check_argv(const std::vector<Node>& hosts, const std::string& self_path,
                     const CheckRequest& check, bool overlap) {
  return srun_argv(hosts, check_command(self_path, check), overlap);
}

ProbeResult run_probe(Loop& loop, const ProbeSpec& spec, const NodeNaming& naming) {
  AskSpec ask;
  ask.reach = spec.reach;
  ask.hosts = spec.hosts;
  ask.command = [&spec](const std::string& node) {
    CheckRequest check = spec.check;
    if (!node.empty()) check.node = node;
    return check_command(spec.self_path, check);
  };
  ask.read = reports_in;
  ask.beside = spec.beside;
  ask.overlap = spec.overlap;
  ask.together_s = spec.together_s;
  ask.alone_s = spec.alone_s;
  ask.alone_tries = spec.alone_tries;
  ask.at_once = spec.at_once;
  ask.give_up = spec.give_up;
  AskResult asked = ask_nodes(loop, ask, naming);

  ProbeResult result;
  for (const auto& [host, answer] : asked.answered) {
    if (auto report = parse_report(answer.text)) result.answered[host] = std::move(*report);
  }
  result.refused = std::move(asked.refused);
  result.silent = std::move(asked.silent);
  result.ran = asked.ran;
  result.given_up = asked.given_up;
  result.trouble = std::move(asked.trouble);
  return result;
}

}  // namespace ezpz::probe
