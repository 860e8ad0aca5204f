// `ezpz topology LOG`: which host ran which rank, as the log itself tells it.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/log_input.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/text.h"
#include "evidence/topology_reader.h"
#include "site/machine.h"

namespace ezpz::app {
namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks);
}

std::string tell(const evidence::Placement& placement) {
  std::string text;
  if (placement.world_size) {
    text += fmt::format("world size {} ({})\n", *placement.world_size, placement.world_size_why);
  } else {
    text += fmt::format("world size unknown: {}\n", placement.world_size_why);
  }
  size_t width = 0;
  for (const auto& host : placement.hosts) width = std::max(width, printable(host.name).size());
  for (const auto& host : placement.hosts) {
    text += fmt::format("{:<{}}  {}\n", printable(host.name), width, ranks_text(host.ranks));
  }
  if (placement.hosts.empty()) text += "no line tells which host ran which rank\n";
  for (const auto& conflict : placement.conflicts) {
    std::vector<std::string> claims;
    for (const auto& claim : conflict.claims) {
      claims.push_back(fmt::format("{} (line {})", printable(claim.host), claim.line));
    }
    text += fmt::format("contradiction: {} claimed by {}; placed nowhere\n",
                        ranks_text(conflict.ranks), join(claims, " and "));
  }
  if (!placement.unplaced.empty()) text += "unplaced: " + placement.unplaced + "\n";
  for (const auto& move : placement.moves) {
    text += fmt::format("moved: {} from {} to {} (line {})\n", ranks_text(move.ranks),
                        printable(move.from), printable(move.to), move.line);
  }
  for (const auto& launch : placement.earlier) {
    text += fmt::format("earlier launch: step {} (line {}), {} ranks on {} hosts\n",
                        printable(launch.step_id), launch.line, launch.ranks, launch.hosts);
  }
  for (const std::string& remark : placement.remarks) text += "note: " + printable(remark) + "\n";
  return text;
}

Json to_json(const evidence::Placement& placement) {
  Json json{{"world_size", placement.world_size ? Json(*placement.world_size) : Json(nullptr)},
            {"world_size_why", placement.world_size_why},
            {"step_id", placement.step_id.empty() ? Json(nullptr) : Json(placement.step_id)}};
  const auto list = [&json](const char* name) -> Json& { return json[name] = Json::array(); };
  Json& hosts = list("hosts");
  for (const auto& host : placement.hosts) {
    hosts.push_back(
        {{"host", host.name}, {"ranks", ranges(host.ranks)}, {"spelled", host.spelled}});
  }
  Json& conflicts = list("conflicts");
  for (const auto& conflict : placement.conflicts) {
    Json claims = Json::array();
    for (const auto& claim : conflict.claims) {
      claims.push_back({{"host", claim.host}, {"line", claim.line}});
    }
    conflicts.push_back({{"ranks", ranges(conflict.ranks)}, {"claims", claims}});
  }
  json["unplaced"] = placement.unplaced;
  Json& moves = list("moves");
  for (const auto& move : placement.moves) {
    moves.push_back(
        {{"ranks", ranges(move.ranks)}, {"from", move.from}, {"to", move.to}, {"line", move.line}});
  }
  Json& earlier = list("earlier");
  for (const auto& launch : placement.earlier) {
    earlier.push_back({{"step_id", launch.step_id},
                       {"line", launch.line},
                       {"ranks", launch.ranks},
                       {"hosts", launch.hosts}});
  }
  json["nobody"] = ranges(placement.nobody);
  json["remarks"] = placement.remarks;
  return json;
}

}  // namespace

int run_topology(const Words& words) {
  bool as_json = false;
  std::string machine;
  std::string machines_dir;
  std::string patterns_dir;
  FlagTable table(
      "ezpz topology [--json] LOG",
      "Tells which host ran which rank, and how many ranks there were, as the log itself says it: "
      "srun -v, programs' banners, NCCL's and DeepSpeed's lines, host labels before lines. LOG - "
      "is "
      "standard input. What the log does not tell stays unknown, what it contradicts is placed "
      "nowhere, and both are said.");
  table.add_switch({"--json"}, "For programs.", &as_json);
  table.add_string(
      {"--machine"}, "NAME",
      "Node names are this machine's. Default: what any machine's table would take off "
      "a name is taken off.",
      &machine);
  table.add_string({"--machines-dir"}, "DIR", "Machine tables that replace or add to the built-in.",
                   &machines_dir);
  table.add_string({"--patterns-dir"}, "DIR", "Patterns that replace or add to the built-in.",
                   &patterns_dir);
  table.epilogue(
      "A rank that two hosts claim has moved to the later one if the former claims nothing more\n"
      "(a relaunch in the same log); else it is a contradiction. Of several srun steps the last "
      "is\n"
      "told and the earlier ones are listed: give the log of one attempt to see it.\n\n"
      "Examples\n"
      "  ezpz topology logs/failover-1234/attempt-1.log\n"
      "  zcat old.log.gz | ezpz topology --json -");
  if (FlagTable::wants_help_mixed(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse_mixed(words);
  if (!rest) return usage_error(rest.error().one_line());
  if (rest->size() != 1) return usage_error("give one log (ezpz topology LOG; - reads stdin)");
  const Result<std::vector<site::Machine>> machines = site::load_machines(machines_dir);
  if (!machines) return usage_error(machines.error().one_line());
  NodeNaming naming = site::naming_of_all(*machines);
  if (!machine.empty()) {
    const Result<site::Detection> named = site::named_machine(*machines, machine);
    if (!named) return usage_error(named.error().one_line());
    naming = named->machine.naming;
    machine = named->machine.name;
  }
  const Result<evidence::Grammar> grammar = evidence::Grammar::load(patterns_dir, machine);
  if (!grammar) return usage_error(grammar.error().one_line());
  evidence::TopologyReader reader(*grammar, std::move(naming));
  const Status read =
      read_log(rest->at(0), [&reader](std::string_view bytes) { reader.feed(bytes); });
  if (!read) return usage_error(read.error().one_line());
  reader.finish();
  const evidence::Placement placement = reader.conclude();
  write_all(1, as_json ? dump_pretty(to_json(placement)) + "\n" : tell(placement));
  return 0;
}

}  // namespace ezpz::app
