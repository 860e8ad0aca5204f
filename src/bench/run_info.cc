#include "bench/run_info.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"

namespace ezpz::bench {
namespace {

constexpr std::string_view kFormat = "ezpz run_info 1";

Json word(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json count(int number) { return number > 0 ? Json(number) : Json(nullptr); }

Json object(const NamedValues& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

// What is missing, or of another type, stays as it is.
void read(const Json& json, const char* name, std::string* into) {
  const auto found = json.find(name);
  if (found != json.end() && found->is_string()) *into = found->get<std::string>();
}

void read(const Json& json, const char* name, int* into) {
  constexpr int64_t most = 100'000'000;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) return;
  // An unsigned number beyond int64_t would come out negative.
  const auto number = found->get<int64_t>();
  if (number >= 0 && number <= most) *into = static_cast<int>(number);
}

void read(const Json& json, const char* name, std::vector<std::string>* into) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& item : *found) {
    if (item.is_string()) into->push_back(item.get<std::string>());
  }
}

void read(const Json& json, const char* name, NamedValues* into) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return;
  for (const auto& [key, value] : found->items()) {
    into->emplace_back(key, value.is_string() ? value.get<std::string>() : dump(value));
  }
}

// The objects of a list.
template <class OnEach>
void read_each(const Json& json, const char* name, const OnEach& on_each) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& item : *found) {
    if (item.is_object()) on_each(item);
  }
}

void read_network(const Json& json, NetworkInfo* network) {
  const auto found = json.find("network");
  if (found == json.end() || !found->is_object()) return;
  read(*found, "expected", &network->expected);
  read(*found, "used", &network->used);
  read(*found, "fallback_to", &network->fallback_to);
  const auto fallback = found->find("fallback");
  network->fallback = fallback != found->end() && fallback->is_boolean() && fallback->get<bool>();
}

}  // namespace

std::optional<int> gpus_in_use(int world_size, int nodes, int ranks_per_node, int gpus_per_node,
                               std::string* why_unknown) {
  if (world_size <= 0 || nodes <= 0) {
    *why_unknown = "it is not known how many ranks ran";
    return std::nullopt;
  }
  if (gpus_per_node <= 0) {
    *why_unknown = "no GPUs were asked for, or it is not known how many a node has";
    return std::nullopt;
  }
  if (ranks_per_node == 1 && gpus_per_node > 1) {
    *why_unknown = "one rank on a node of several GPUs may use one of them or all";
    return std::nullopt;
  }
  // More ranks than GPUs share them.
  return std::min(world_size, nodes * gpus_per_node);
}

std::string to_json_text(const RunInfo& run) {
  Json attempts = Json::array();
  for (const AttemptInfo& attempt : run.attempts) {
    attempts.push_back({{"attempt", attempt.attempt},
                        {"started", word(attempt.started)},
                        {"ended", word(attempt.ended)},
                        {"hosts", attempt.hosts},
                        {"world_size", count(attempt.world_size)},
                        {"verdict", word(attempt.verdict)},
                        {"summary", word(attempt.summary)},
                        {"action", word(attempt.action)}});
  }
  Json swaps = Json::array();
  for (const SwapInfo& swap : run.swaps) {
    swaps.push_back({{"after_attempt", swap.attempt},
                     {"out", swap.out},
                     {"in", swap.in},
                     {"provenance", swap.provenance}});
  }
  const Json json = {
      {"format", kFormat},
      {"written_by", word(run.written_by)},
      {"machine", word(run.machine)},
      {"system", word(run.system)},
      {"scheduler", word(run.scheduler)},
      {"job_id", word(run.job_id)},
      {"launcher", word(run.launcher)},
      {"hosts", run.hosts},
      {"nodes", count(static_cast<int>(run.hosts.size()))},
      {"world_size", count(run.world_size)},
      {"ranks_per_node", count(run.ranks_per_node)},
      {"gpus_per_node", count(run.gpus_per_node)},
      {"gpus", run.gpus ? Json(*run.gpus) : Json(nullptr)},
      {"gpus_unknown", word(run.gpus_unknown)},
      {"network",
       {{"expected", word(run.network.expected)},
        {"used", run.network.used},
        {"fallback", run.network.fallback},
        {"fallback_to", word(run.network.fallback_to)}}},
      {"command", run.command},
      {"config", object(run.config)},
      {"versions", object(run.versions)},
      {"git_commit", word(run.git_commit)},
      {"attempts", attempts},
      {"swaps", swaps},
      {"started", word(run.started)},
      {"updated", word(run.updated)},
      {"ended", word(run.ended)},
      {"end", word(run.end)},
  };
  return dump_pretty(json) + "\n";
}

Result<RunInfo> run_info_from_json(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::string format;
  if (json.is_object()) read(json, "format", &format);
  if (format != kFormat) {
    return Error{json.is_discarded() ? "not JSON" : "not a run_info.json of ezpz", where, ""};
  }
  RunInfo run;
  read(json, "written_by", &run.written_by);
  read(json, "machine", &run.machine);
  read(json, "system", &run.system);
  read(json, "scheduler", &run.scheduler);
  read(json, "job_id", &run.job_id);
  read(json, "launcher", &run.launcher);
  read(json, "hosts", &run.hosts);
  read(json, "world_size", &run.world_size);
  read(json, "ranks_per_node", &run.ranks_per_node);
  read(json, "gpus_per_node", &run.gpus_per_node);
  int gpus = 0;
  read(json, "gpus", &gpus);
  if (gpus > 0) run.gpus = gpus;
  read(json, "gpus_unknown", &run.gpus_unknown);
  read_network(json, &run.network);
  read(json, "command", &run.command);
  read(json, "config", &run.config);
  read(json, "versions", &run.versions);
  read(json, "git_commit", &run.git_commit);
  read_each(json, "attempts", [&run](const Json& item) {
    AttemptInfo attempt;
    read(item, "attempt", &attempt.attempt);
    read(item, "started", &attempt.started);
    read(item, "ended", &attempt.ended);
    read(item, "hosts", &attempt.hosts);
    read(item, "world_size", &attempt.world_size);
    read(item, "verdict", &attempt.verdict);
    read(item, "summary", &attempt.summary);
    read(item, "action", &attempt.action);
    run.attempts.push_back(std::move(attempt));
  });
  read_each(json, "swaps", [&run](const Json& item) {
    SwapInfo swap;
    read(item, "after_attempt", &swap.attempt);
    read(item, "out", &swap.out);
    read(item, "in", &swap.in);
    read(item, "provenance", &swap.provenance);
    run.swaps.push_back(std::move(swap));
  });
  read(json, "started", &run.started);
  read(json, "updated", &run.updated);
  read(json, "ended", &run.ended);
  read(json, "end", &run.end);
  return run;
}

Status write_run_info(const std::string& directory, const RunInfo& run) {
  return write_file_atomically(directory + "/run_info.json", to_json_text(run));
}

}  // namespace ezpz::bench
