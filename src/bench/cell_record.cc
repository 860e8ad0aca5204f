#include "bench/cell_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr const char* kFormat = "ezpz bench cell 1";
constexpr std::string_view kStates[] = {"pending", "running", "done", "failed", "timed_out"};

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t number_of(const Json& json, const char* name, int64_t otherwise) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

std::vector<std::string> texts_of(const Json& json, const char* name) {
  std::vector<std::string> texts;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return texts;
  for (const Json& each : *found) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

// Of two long commands a person wants to see where they part: from a little before that.
size_t first_difference(const std::string& a, const std::string& b) {
  constexpr size_t short_enough = 60, before = 20;
  if (std::max(a.size(), b.size()) <= short_enough) return 0;
  const size_t common = std::min(a.size(), b.size());
  const auto parted =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin());
  const auto at = static_cast<size_t>(parted.first - a.begin());
  return at > before ? at - before : 0;
}

std::string excerpt(const std::string& text, size_t from) {
  return (from > 0 ? "..." : "") + printable(std::string_view(text).substr(from), 80);
}

}  // namespace

std::string to_json_text(const CellRecord& record) {
  Json json = {{"format", kFormat},
               {"label", record.label},
               {"state", record.state},
               {"why", record.why},
               {"resolved", Json::object()},
               {"argv", record.argv},
               {"exit_code", record.exit_code >= 0 ? Json(record.exit_code) : Json(nullptr)},
               {"attempts", record.attempts},
               {"run_dir", record.run_dir},
               {"started", record.started},
               {"ended", record.ended},
               {"host", record.host},
               {"pid", record.pid},
               {"start_ticks", record.start_ticks},
               {"exported", record.exported}};
  for (const auto& [name, value] : record.resolved) json["resolved"][name] = value;
  return dump_pretty(json) + "\n";
}

Result<CellRecord> cell_record_from_json(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || text_of(json, "format") != kFormat) {
    return Error{"not a record of a cell", where,
                 "move its directory aside, or take another --outdir"};
  }
  CellRecord record;
  record.label = text_of(json, "label");
  record.state = text_of(json, "state");
  record.why = text_of(json, "why");
  if (const auto found = json.find("resolved"); found != json.end() && found->is_object()) {
    for (const auto& [name, value] : found->items()) {
      if (value.is_string()) record.resolved[name] = value.get<std::string>();
    }
  }
  record.argv = texts_of(json, "argv");
  record.exit_code = static_cast<int>(number_of(json, "exit_code", -1));
  constexpr int64_t most = 1'000'000;
  record.attempts = static_cast<int>(std::clamp<int64_t>(number_of(json, "attempts", 0), 0, most));
  record.run_dir = text_of(json, "run_dir");
  record.started = text_of(json, "started");
  record.ended = text_of(json, "ended");
  record.host = text_of(json, "host");
  record.pid = static_cast<pid_t>(number_of(json, "pid", 0));
  record.start_ticks = static_cast<uint64_t>(number_of(json, "start_ticks", 0));
  record.exported = texts_of(json, "exported");
  const bool known =
      std::find(std::begin(kStates), std::end(kStates), record.state) != std::end(kStates);
  // It is a name beside the record, and nothing that leads elsewhere.
  if (!known || record.run_dir.find('/') != std::string::npos) {
    return Error{"a record of a cell that says what none would", where,
                 "move its directory aside, or take another --outdir"};
  }
  return record;
}

std::vector<std::string> changes(const std::map<std::string, std::string>& before,
                                 const std::map<std::string, std::string>& now) {
  std::vector<std::string> list;
  for (const auto& [name, value] : now) {
    const auto was = before.find(name);
    if (was == before.end()) {
      list.push_back("also " + name + " " + printable(value, 80));
    } else if (was->second != value) {
      const size_t from = first_difference(value, was->second);
      list.push_back(name + " " + excerpt(value, from) + " instead of " +
                     excerpt(was->second, from));
    }
  }
  for (const auto& [name, value] : before) {
    if (now.count(name) == 0) list.push_back("no " + name + ", which was " + printable(value, 80));
  }
  return list;
}

}  // namespace ezpz::bench
