#include "failover/record_json.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "verdict/network.h"

namespace ezpz::failover {
namespace {

std::string word(std::string_view text) { return std::string(text); }

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
void read(const Json& json, const char* name, T& into) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) into = found->get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) into = found->get<bool>();
  } else {
    if (found->is_number()) into = found->get<T>();
  }
}

template <class T>
void read(const Json& json, const char* name, std::optional<T>& into) {
  T value{};
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return;
  read(json, name, value);
  into = value;
}

template <class Enum>
void read_word(const Json& json, const char* name, Enum& into) {
  std::string text;
  read(json, name, text);
  parse(text, &into);
}

void read_names(const Json& json, const char* name, std::vector<std::string>& into) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& item : *found) {
    if (item.is_string()) into.push_back(item.get<std::string>());
  }
}

Fact fact_from_json(const Json& json) {
  Fact fact;
  read(json, "time_s", fact.time_s);
  read(json, "line", fact.line);
  read(json, "offset", fact.offset);
  read(json, "text", fact.text);
  read(json, "pattern", fact.pattern);
  read(json, "host", fact.host);
  read(json, "label", fact.label);
  read(json, "ip", fact.ip);
  read(json, "signal", fact.signal);
  read(json, "code", fact.code);
  read(json, "reason", fact.reason);
  read(json, "step_id", fact.step_id);
  read(json, "seq", fact.seq);
  read(json, "weak", fact.weak);
  read(json, "step", fact.step);
  read_word(json, "source", fact.source);
  read_word(json, "kind", fact.kind);
  read_word(json, "role", fact.role);
  read_word(json, "event", fact.event);
  if (const auto ranks = json.find("ranks"); ranks != json.end() && ranks->is_array()) {
    for (const Json& rank : *ranks) {
      if (rank.is_number_integer()) fact.ranks.push_back(rank.get<int>());
    }
  }
  return fact;
}

}  // namespace

Json to_json(const Fact& fact) {
  Json json = {{"source", word(to_string(fact.source))}, {"pattern", fact.pattern},
               {"kind", word(to_string(fact.kind))},     {"role", word(to_string(fact.role))},
               {"event", word(to_string(fact.event))},   {"text", fact.text}};
  if (fact.time_s != 0) json["time_s"] = fact.time_s;
  if (fact.line != 0) {
    json["line"] = fact.line;
    json["offset"] = fact.offset;
  }
  if (!fact.host.empty()) json["host"] = fact.host;
  if (!fact.label.empty()) json["label"] = fact.label;
  if (!fact.ranks.empty()) json["ranks"] = fact.ranks;
  if (!fact.ip.empty()) json["ip"] = fact.ip;
  if (fact.signal != 0) json["signal"] = fact.signal;
  if (fact.code != -1) json["code"] = fact.code;
  if (!fact.reason.empty()) json["reason"] = fact.reason;
  if (!fact.step_id.empty()) json["step_id"] = fact.step_id;
  if (fact.seq >= 0) json["seq"] = fact.seq;
  if (fact.weak) json["weak"] = true;
  if (fact.step >= 0) json["step"] = fact.step;
  return json;
}

Json to_json(const Exit& exit) {
  return {
      {"code", exit.code}, {"signal", exit.signal}, {"core", exit.core}, {"text", exit.describe()}};
}

Json to_json(const evidence::Progress& progress) {
  return {{"first", optional_json(progress.first_step)},
          {"last", optional_json(progress.last_step)},
          {"last_checkpoint", optional_json(progress.last_checkpoint)},
          {"resumed_from", optional_json(progress.resumed_from)},
          {"interval", optional_json(progress.interval)},
          {"earlier_runs_end", optional_json(progress.earlier_runs_end)},
          {"survived_line", optional_json(progress.survived_line)}};
}

Json to_json(const verdict::SchedulerView& view) {
  return {{"end_time_s", optional_json(view.end_time_s)},
          {"job_state", optional_json(view.job_state)},
          {"node_states", view.node_states},
          {"trouble", view.trouble}};
}

Json placement_json(const std::map<int, std::string>& host_of_rank) {
  std::map<std::string, std::vector<int>> by_host;
  for (const auto& [rank, host] : host_of_rank) by_host[host].push_back(rank);
  Json json = Json::object();
  for (const auto& [host, ranks] : by_host) json[host] = ezpz::ranges(ranks);
  return json;
}

Json to_json(const verdict::AttemptRecord& record) {
  Json facts = Json::array();
  for (const Fact& fact : record.facts) facts.push_back(to_json(fact));
  Json ranks = Json::array();
  for (const auto& [rank, host] : record.host_of_rank) ranks.push_back({rank, host});
  return {{"attempt", record.attempt},
          {"exit", to_json(record.exit)},
          {"ending", word(to_string(record.ending))},
          {"started_s", record.started_s},
          {"ended_s", record.ended_s},
          {"active", record.active},
          {"host_of_rank", ranks},
          {"retired_earlier", record.retired_earlier},
          {"end_announced", record.user_asked_stop_by_signal},
          {"network_wish",
           {{"expected", record.network.expected},
            {"required", record.network.required},
            {"remedy", record.network.remedy},
            {"price", record.network.price}}},
          {"progress", to_json(record.progress)},
          {"scheduler", to_json(record.scheduler)},
          {"facts", facts}};
}

Json to_json(const verdict::Verdict& verdict, const std::vector<Fact>& facts) {
  Json culprits = Json::array();
  for (const verdict::Culprit& culprit : verdict.culprits) {
    Json entry = {{"host", culprit.host},
                  {"provenance", word(to_string(culprit.provenance))},
                  {"ranks", ezpz::ranges(culprit.ranks)}};
    if (culprit.fact < facts.size()) {
      entry["evidence"] = facts[culprit.fact].text;
      entry["line"] = facts[culprit.fact].line;
    }
    culprits.push_back(std::move(entry));
  }
  Json aside = Json::array();
  for (const verdict::SetAside& each : verdict.set_aside) {
    aside.push_back({{"fact", each.fact}, {"reason", each.reason}});
  }
  return {{"verdict", word(to_string(verdict.kind))},
          {"culprits", culprits},
          {"suspects", verdict.suspects},
          {"confidence", verdict.confidence},
          {"summary", verdict.summary},
          {"remedy", verdict.remedy},
          {"used", verdict.used},
          {"set_aside", aside},
          {"retired_host_named", verdict.retired_host_named}};
}

Json to_json(const verdict::Decision& decision) {
  Json out = Json::array();
  for (const verdict::Culprit& culprit : decision.swap_out) {
    out.push_back({{"host", culprit.host}, {"provenance", word(to_string(culprit.provenance))}});
  }
  return {{"action", word(to_string(decision.action))},
          {"why", decision.why},
          {"swap_out", out},
          {"backoff_s", decision.backoff_s},
          {"stop_reason", decision.stop_reason},
          {"mark_earlier_doubtful", decision.mark_earlier_doubtful},
          {"exonerated", decision.exonerated}};
}

Json to_json(const verdict::ProbeOutcome& outcome) {
  return {{"ran", outcome.ran},
          {"failed", outcome.failed},
          {"unknown", outcome.unknown},
          {"trouble", outcome.trouble}};
}

Json equipment_json(const std::vector<Fact>& facts, const verdict::NodeKey& node_key) {
  const auto uses = [&](Event event) {
    Json list = Json::array();
    for (const verdict::NetworkUse& use : verdict::uses_of(event, facts, node_key)) {
      list.push_back({{"name", use.name}, {"hosts", use.hosts}});
    }
    return list;
  };
  return {{"networks", uses(Event::network)},
          {"providers", uses(Event::provider)},
          {"versions", uses(Event::version)}};
}

Json spellings_json(const std::vector<Node>& nodes) { return spellings(nodes); }

verdict::AttemptRecord attempt_from_json(const Json& json) {
  verdict::AttemptRecord record;
  read(json, "attempt", record.attempt);
  if (const auto exit = json.find("exit"); exit != json.end() && exit->is_object()) {
    read(*exit, "code", record.exit.code);
    read(*exit, "signal", record.exit.signal);
    read(*exit, "core", record.exit.core);
  }
  read_word(json, "ending", record.ending);
  read(json, "started_s", record.started_s);
  read(json, "ended_s", record.ended_s);
  read_names(json, "active", record.active);
  read_names(json, "retired_earlier", record.retired_earlier);
  read(json, "end_announced", record.user_asked_stop_by_signal);
  if (const auto wish = json.find("network_wish"); wish != json.end() && wish->is_object()) {
    read(*wish, "expected", record.network.expected);
    read(*wish, "required", record.network.required);
    read(*wish, "remedy", record.network.remedy);
    read(*wish, "price", record.network.price);
  }
  if (const auto ranks = json.find("host_of_rank"); ranks != json.end() && ranks->is_array()) {
    for (const Json& pair : *ranks) {
      if (pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() &&
          pair[1].is_string()) {
        record.host_of_rank[pair[0].get<int>()] = pair[1].get<std::string>();
      }
    }
  }
  if (const auto progress = json.find("progress");
      progress != json.end() && progress->is_object()) {
    read(*progress, "first", record.progress.first_step);
    read(*progress, "last", record.progress.last_step);
    read(*progress, "last_checkpoint", record.progress.last_checkpoint);
    read(*progress, "resumed_from", record.progress.resumed_from);
    read(*progress, "interval", record.progress.interval);
    read(*progress, "earlier_runs_end", record.progress.earlier_runs_end);
    read(*progress, "survived_line", record.progress.survived_line);
  }
  if (const auto view = json.find("scheduler"); view != json.end() && view->is_object()) {
    read(*view, "end_time_s", record.scheduler.end_time_s);
    read(*view, "job_state", record.scheduler.job_state);
    read_names(*view, "trouble", record.scheduler.trouble);
    if (const auto states = view->find("node_states");
        states != view->end() && states->is_object()) {
      for (const auto& [host, state] : states->items()) {
        if (state.is_string()) record.scheduler.node_states[host] = state.get<std::string>();
      }
    }
  }
  if (const auto facts = json.find("facts"); facts != json.end() && facts->is_array()) {
    for (const Json& fact : *facts) {
      if (fact.is_object()) record.facts.push_back(fact_from_json(fact));
    }
  }
  return record;
}

}  // namespace ezpz::failover
