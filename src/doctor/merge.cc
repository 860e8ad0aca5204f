#include "doctor/merge.h"

#include <algorithm>
#include <cctype>
#include <tuple>

namespace ezpz::doctor {
namespace {

// Figures in a sentence differ from node to node where the trouble is the same.
std::string without_figures(const std::string& text) {
  std::string shape;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool inside = in_number && c == '.';
    if (!digit && !inside) shape += c;
    if (digit && !in_number) shape += '#';
    in_number = digit || inside;
  }
  return shape;
}

using GroupKey = std::tuple<std::string, Health, std::string, std::string, std::string>;

// What is fine is fine, whatever the figures and words.
GroupKey key_of(const Finding& finding) {
  if (finding.health == Health::ok) return {finding.check, Health::ok, "", "", ""};
  return {finding.check, finding.health, without_figures(finding.why),
          without_figures(finding.remedy), finding.reference};
}

Row& row_of(std::vector<Row>& rows, const std::string& check) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.check == check; });
  if (found != rows.end()) return *found;
  rows.push_back({check, {}, 0});
  return rows.back();
}

}  // namespace

Health Row::health() const {
  Health health = Health::ok;
  for (const Group& group : groups) health = std::max(health, group.health);
  return health;
}

std::vector<Row> merge(const std::vector<Finding>& of_job, const std::vector<PeerFinding>& of_hosts,
                       size_t asked) {
  std::vector<Row> rows;
  for (const Finding& finding : of_job) {
    row_of(rows, finding.check)
        .groups.push_back(
            {finding.health, finding.why, finding.remedy, finding.reference, {}, false});
  }
  std::map<GroupKey, std::pair<size_t, size_t>> places;  // row and group in it
  for (const auto& [finding, hosts] : of_hosts) {
    Row& row = row_of(rows, finding.check);
    row.of = asked;
    const auto row_index = static_cast<size_t>(&row - rows.data());
    const auto [place, fresh] =
        places.emplace(key_of(finding), std::make_pair(row_index, row.groups.size()));
    if (fresh) {
      row.groups.push_back(
          {finding.health, finding.why, finding.remedy, finding.reference, {}, false});
    }
    Group& group = rows[place->second.first].groups[place->second.second];
    group.figures_differ = group.figures_differ || group.why != finding.why;
    group.hosts.insert(group.hosts.end(), hosts.begin(), hosts.end());
  }
  for (Row& row : rows) {
    for (Group& group : row.groups) {
      std::sort(group.hosts.begin(), group.hosts.end());
      group.hosts.erase(std::unique(group.hosts.begin(), group.hosts.end()), group.hosts.end());
    }
    std::stable_sort(row.groups.begin(), row.groups.end(),
                     [](const Group& a, const Group& b) { return a.health > b.health; });
  }
  return rows;
}

Health worst(const std::vector<Row>& rows) {
  Health health = Health::ok;
  for (const Row& row : rows) health = std::max(health, row.health());
  return health;
}

}  // namespace ezpz::doctor
