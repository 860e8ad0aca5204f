#include "doctor/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "doctor/text_of_hosts.h"

namespace ezpz::doctor {
namespace {

constexpr Health kOrder[] = {Health::error, Health::warning, Health::unknown, Health::ok};
constexpr size_t kIndent = 9;

struct Item {
  const Row* row;
  const Group* group;
};

// The other hosts of the check in a few words: "31 of 32 nodes: ok".
std::string rest_of(const Row& row, const Group& told) {
  if (row.of <= 1 || told.hosts.empty()) return "";
  std::map<Health, size_t> counts;
  for (const Group& group : row.groups) {
    if (&group != &told) counts[group.health] += group.hosts.size();
  }
  std::vector<std::string> parts;
  for (const Health health : {Health::ok, Health::unknown, Health::warning, Health::error}) {
    if (counts[health] == 0) continue;
    parts.push_back(fmt::format("{} of {} nodes: {}", counts[health], row.of, to_string(health)));
  }
  return join(parts, ", ");
}

std::string sentence(const Item& item) {
  const Group& group = *item.group;
  if (group.hosts.empty()) return printable(group.why, 1000);
  std::string text;
  // One node, asked alone, is this one: its name stands at the top.
  if (item.row->of > 1) {
    if (group.health == Health::ok) {
      text = fmt::format("{} of {} nodes: ", group.hosts.size(), item.row->of);
    } else {
      const std::string rest = rest_of(*item.row, group);
      if (!rest.empty()) text = rest + "; ";
      text += text_of_hosts(group.hosts) + ": ";
    }
  }
  text += printable(group.why, 1000);
  if (group.figures_differ && group.health != Health::ok) text += " (and the like)";
  return text;
}

// A remedy that names the first of several hosts is one for all of them.
std::string remedy_of(const Group& group) {
  constexpr size_t kMostNamed = 16;
  if (group.hosts.size() < 2 || group.hosts.size() > kMostNamed) return group.remedy;
  const size_t at = group.remedy.find(group.hosts[0]);
  if (at == std::string::npos) return group.remedy;
  std::string remedy = group.remedy;
  return remedy.replace(at, group.hosts[0].size(), join(group.hosts, ","));
}

// "ok       scheduler, job, ...", in lines of bearable length.
std::string names_of(const std::vector<Item>& items) {
  constexpr size_t kWidth = 100;
  std::string text;
  std::string line = "ok       ";
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string word = items[i].row->check + (i + 1 < items.size() ? ", " : "");
    if (line.size() > kIndent && line.size() + word.size() > kWidth) {
      text += std::string(line, 0, line.size() - 1) + "\n";
      line.assign(kIndent, ' ');
    }
    line += word;
  }
  return items.empty() ? "" : text + line + "\n";
}

std::string line_of(const Item& item, size_t width) {
  std::string head(to_string(item.group->health));
  head.resize(kIndent, ' ');
  std::string name = item.row->check;
  name.resize(std::max(width, name.size()), ' ');
  return head + name + "  " + sentence(item) + "\n";
}

// A question without an answer that is some check's reason already.
bool is_said(const Report& report, const std::string& line) {
  const std::string begin = printable(line, 60).substr(0, 60);
  return std::any_of(report.rows.begin(), report.rows.end(), [&](const Row& row) {
    return std::any_of(row.groups.begin(), row.groups.end(), [&](const Group& group) {
      return group.why.find(begin) != std::string::npos;
    });
  });
}

std::string top_of(const Report& report) {
  std::string text = "ezpz doctor on " + printable(report.host, 100) + ": " +
                     printable(report.machine_title, 100) + " (" +
                     printable(report.machine_why, 200) + ")";
  if (report.job_id.empty()) {
    text +=
        report.scheduler == "none" ? ", no scheduler" : ", " + report.scheduler + ", not in a job";
  } else {
    text += ", " + report.scheduler + " job " + printable(report.job_id, 100);
  }
  if (!report.hosts.empty()) {
    text += ", " + count_of(report.hosts.size(), "host") + ": " + text_of_hosts(report.hosts);
  }
  text += "\nlooked at: the job and its site";
  if (report.asked == 1) {
    text += report.answered == 1 ? "; this node" : "; this node, which did not answer";
  } else if (report.asked > 1) {
    text += fmt::format("; {} nodes, of which {} answered", report.asked, report.answered);
  }
  if (report.asked <= 1 && report.hosts.size() > 1) {
    text += "; not the other nodes (--all-nodes does)";
  }
  return text + ", in " + human_duration(report.took_s) + "\n\n";
}

}  // namespace

std::string tell(const Report& report, Fine fine) {
  size_t width = 0;
  for (const Row& row : report.rows) width = std::max(width, row.check.size());
  std::map<Health, std::vector<Item>> items;
  for (const Row& row : report.rows) {
    const bool is_fine = row.health() == Health::ok;
    for (const Group& group : row.groups) {
      // That the rest of the nodes is fine is said beside what is not.
      if (group.health == Health::ok && !is_fine) continue;
      items[group.health].push_back({&row, &group});
    }
  }
  std::string text = top_of(report);
  const std::string indent(kIndent + width + 2, ' ');
  for (const Health health : kOrder) {
    if (health == Health::ok && fine == Fine::names) {
      text += names_of(items[health]);
      if (report.answered < report.asked && !items[health].empty()) {
        text += fmt::format("         (of nodes: of the {} that answered)\n", report.answered);
      }
      continue;
    }
    for (const Item& item : items[health]) {
      text += line_of(item, width);
      if (health == Health::ok) continue;
      if (!item.group->remedy.empty()) {
        text += indent + "do: " + printable(remedy_of(*item.group), 1000) + "\n";
      }
      if (!item.group->reference.empty()) {
        text += indent + "see: " + printable(item.group->reference, 300) + "\n";
      }
    }
  }
  std::vector<std::string> counts;
  for (const Health health : kOrder) {
    if (items[health].empty()) continue;
    const std::string word(to_string(health));
    const bool plural = items[health].size() != 1 && (word == "error" || word == "warning");
    counts.push_back(fmt::format("{} {}{}", items[health].size(), word, plural ? "s" : ""));
  }
  text += "\n";
  for (const std::string& line : report.not_answered) {
    if (is_said(report, line)) continue;
    text += "not answered: " + printable(line, 300) + "\n";
  }
  return text + join(counts, ", ") + "\n";
}

std::string tell_json(const Report& report) {
  Json checks = Json::array();
  std::map<Health, int> counts;
  for (const Row& row : report.rows) {
    Json groups = Json::array();
    for (const Group& group : row.groups) {
      groups.push_back({{"health", std::string(to_string(group.health))},
                        {"why", group.why},
                        {"remedy", group.remedy},
                        {"reference", group.reference},
                        {"hosts", group.hosts}});
    }
    ++counts[row.health()];
    checks.push_back({{"check", row.check},
                      {"health", std::string(to_string(row.health()))},
                      {"of", row.of},
                      {"groups", std::move(groups)}});
  }
  Json count = Json::object();
  for (const Health health : kOrder) count[std::string(to_string(health))] = counts[health];
  const Json json{
      {"form", 1},
      {"ezpz", report.version},
      {"host", report.host},
      {"machine",
       {{"name", report.machine}, {"title", report.machine_title}, {"why", report.machine_why}}},
      {"scheduler", report.scheduler},
      {"job_id", report.job_id.empty() ? Json(nullptr) : Json(report.job_id)},
      {"hosts", report.hosts},
      {"nodes_asked", report.asked},
      {"nodes_answered", report.answered},
      {"took_s", report.took_s},
      {"not_answered", report.not_answered},
      {"health", std::string(to_string(worst(report.rows)))},
      {"counts", std::move(count)},
      {"checks", std::move(checks)}};
  return dump_pretty(json) + "\n";
}

int exit_code(const Report& report, bool strict) {
  switch (worst(report.rows)) {
    case Health::error:
      return 1;
    case Health::warning:
      return strict ? 2 : 0;
    case Health::unknown:
    case Health::ok:
      break;
  }
  return 0;
}

}  // namespace ezpz::doctor
