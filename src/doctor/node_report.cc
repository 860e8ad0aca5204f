#include "doctor/node_report.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr int kForm = 1;
constexpr size_t kMostFindings = 200;
constexpr size_t kMostLeftovers = 200;
constexpr size_t kLongestText = 600;
constexpr size_t kMostText = 200'000;

constexpr Health kHealths[] = {Health::ok, Health::unknown, Health::warning, Health::error};

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return printable(found->get_ref<const std::string&>(), kLongestText);
}

double number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::vector<std::string> texts_of(const Json& array) {
  std::vector<std::string> texts;
  if (!array.is_array()) return texts;
  for (const Json& item : array) {
    if (item.is_string()) texts.push_back(printable(item.get_ref<const std::string&>()));
  }
  return texts;
}

// The entries of an object under this key; none when there is none.
template <class Take>
void each_entry(const Json& object, const char* key, const Take& take) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return;
  for (const auto& [name, value] : found->items()) take(printable(name), value);
}

template <class Take>
void each_item(const Json& object, const char* key, const Take& take) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return;
  for (const Json& item : *found) {
    if (item.is_object()) take(item);
  }
}

Json to_json(const Leftover& leftover) {
  return {{"pid", leftover.pid},
          {"name", leftover.name},
          {"job", leftover.job_id},
          {"attempt", leftover.attempt_id},
          {"rank", leftover.rank}};
}

}  // namespace

Json to_json(const Finding& finding) {
  return {{"check", finding.check},
          {"health", std::string(to_string(finding.health))},
          {"why", finding.why},
          {"remedy", finding.remedy},
          {"reference", finding.reference}};
}

std::optional<Finding> finding_from(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Finding finding;
  finding.check = text_of(json, "check");
  finding.why = text_of(json, "why");
  finding.remedy = text_of(json, "remedy");
  finding.reference = text_of(json, "reference");
  const std::string word = text_of(json, "health");
  for (const Health health : kHealths) {
    if (word == to_string(health)) {
      finding.health = health;
      if (finding.check.empty()) return std::nullopt;
      return finding;
    }
  }
  return std::nullopt;
}

std::string format_report(const NodeReport& report) {
  const NodeFacts& facts = report.facts;
  Json json{{"form", kForm},
            {"node", facts.node},
            {"hostname", facts.hostname},
            {"began_s", facts.began_s},
            {"answered_s", facts.answered_s},
            {"cwd", facts.cwd},
            {"addresses", facts.addresses},
            {"names", facts.names},
            {"sees", facts.sees},
            {"alike", facts.alike},
            {"socket_interfaces", facts.socket_interfaces}};
  Json& leftovers = json["leftovers"] = Json::array();
  for (const Leftover& leftover : facts.leftovers) {
    if (leftovers.size() < kMostLeftovers) leftovers.push_back(to_json(leftover));
  }
  Json& findings = json["findings"] = Json::array();
  for (const Finding& finding : report.findings) {
    if (findings.size() < kMostFindings) findings.push_back(to_json(finding));
  }
  // ASCII, because a launcher may cut it anywhere.
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<NodeReport> parse_report(std::string_view text) {
  if (text.size() > kMostText) return std::nullopt;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || number_of(json, "form") != kForm) return std::nullopt;
  NodeReport report;
  NodeFacts& facts = report.facts;
  facts.node = text_of(json, "node");
  if (facts.node.empty()) return std::nullopt;
  facts.hostname = text_of(json, "hostname");
  facts.began_s = number_of(json, "began_s");
  facts.answered_s = number_of(json, "answered_s");
  facts.cwd = text_of(json, "cwd");
  each_entry(json, "addresses", [&](const std::string& name, const Json& value) {
    facts.addresses[name] = texts_of(value);
  });
  each_entry(json, "names", [&](const std::string& name, const Json& value) {
    facts.names[name] = texts_of(value);
  });
  each_entry(json, "sees", [&](const std::string& path, const Json& value) {
    if (value.is_boolean()) facts.sees[path] = value.get<bool>();
  });
  each_entry(json, "alike", [&](const std::string& name, const Json& value) {
    if (value.is_string()) facts.alike[name] = printable(value.get_ref<const std::string&>());
  });
  const auto interfaces = json.find("socket_interfaces");
  if (interfaces != json.end()) facts.socket_interfaces = texts_of(*interfaces);
  each_item(json, "leftovers", [&](const Json& item) {
    Leftover leftover;
    leftover.pid = static_cast<int>(number_of(item, "pid"));
    leftover.name = text_of(item, "name");
    leftover.job_id = text_of(item, "job");
    leftover.attempt_id = text_of(item, "attempt");
    const auto rank = item.find("rank");
    leftover.rank = rank != item.end() && rank->is_boolean() && rank->get<bool>();
    if (facts.leftovers.size() < kMostLeftovers) facts.leftovers.push_back(std::move(leftover));
  });
  each_item(json, "findings", [&](const Json& item) {
    auto finding = finding_from(item);
    if (finding && report.findings.size() < kMostFindings) {
      report.findings.push_back(std::move(*finding));
    }
  });
  return report;
}

}  // namespace ezpz::doctor
