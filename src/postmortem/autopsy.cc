#include "postmortem/autopsy.h"

#include <set>
#include <utility>

namespace ezpz::postmortem {
namespace {

// The hosts that a log names in a way that makes them hosts of the job: ranks run there, or
// somebody speaks of what happened there.
std::vector<std::string> hosts_named(const evidence::Stream& stream, const NodeNaming& naming) {
  std::vector<std::string> hosts;
  std::set<std::string> known;
  const auto add = [&](const std::string& spelled) {
    if (spelled.empty()) return;
    std::string key = node_key(spelled, naming);
    if (known.insert(key).second) hosts.push_back(std::move(key));
  };
  for (const auto& [host, ranks] : stream.topology().hosts()) add(host);
  for (const Fact& fact : stream.facts()) {
    add(fact.host);
    add(fact.label);
  }
  return hosts;
}

}  // namespace

verdict::AttemptRecord record_of(const evidence::Stream& stream, const Circumstances& known) {
  verdict::AttemptRecord record;
  record.active_known = !known.active.empty();
  for (const Node& node : known.active) record.active.push_back(node.key);
  if (!record.active_known) record.active = hosts_named(stream, known.naming);
  for (const auto& [host, ranks] : stream.topology().hosts()) {
    for (const int rank : ranks) record.host_of_rank[rank] = host;
  }
  record.facts = stream.facts();
  record.network = known.network;
  record.progress = stream.progress();
  record.exit_known = known.rc.has_value();
  if (known.rc) record.exit.code = *known.rc;
  return record;
}

Autopsy examine(verdict::AttemptRecord record, const NodeNaming& naming,
                const evidence::Grammar& grammar) {
  Autopsy autopsy;
  autopsy.record = std::move(record);
  autopsy.node_key = [naming](std::string_view name) { return node_key(name, naming); };
  autopsy.verdict = verdict::attribute(
      autopsy.record, autopsy.node_key,
      [&grammar](std::string_view pattern) { return std::string(grammar.remedy(pattern)); });
  verdict::Budget budget;
  budget.retries_left = 1;
  budget.spares_left = static_cast<int>(std::max<size_t>(1, autopsy.verdict.culprits.size()));
  autopsy.decision = verdict::decide(autopsy.record, autopsy.verdict, {}, budget);
  if (autopsy.record.scheduler.end_time_s && autopsy.record.ended_s > 0) {
    autopsy.walltime_left_s = *autopsy.record.scheduler.end_time_s - autopsy.record.ended_s;
  }
  return autopsy;
}

}  // namespace ezpz::postmortem
