#include "verdict/laggards.h"

#include <algorithm>
#include <map>
#include <set>

namespace ezpz::verdict {
namespace {

std::set<int> said_to_be_missing(const CaseFile& file) {
  std::set<int> ranks;
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& fact = *exhibit.fact;
    if (fact.kind != Kind::collective_timeout || fact.event != Event::unreachable) continue;
    ranks.insert(fact.ranks.begin(), fact.ranks.end());
  }
  return ranks;
}

// Ranks by the number of the collective they were in when their own watchdog spoke first.
std::map<int64_t, std::set<int>> by_sequence(const CaseFile& file) {
  std::map<int64_t, std::set<int>> at;
  std::set<int> seen;
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& fact = *exhibit.fact;
    if (fact.kind != Kind::collective_timeout || fact.seq < 0) continue;
    for (const int rank : fact.ranks) {
      if (seen.insert(rank).second) at[fact.seq].insert(rank);
    }
  }
  return at;
}

}  // namespace

std::vector<int> laggards(const CaseFile& file) {
  const std::set<int> missing = said_to_be_missing(file);
  if (!missing.empty()) return {missing.begin(), missing.end()};
  const std::map<int64_t, std::set<int>> at = by_sequence(file);
  if (at.size() < 2) return {};
  const std::set<int>& behind = at.begin()->second;
  size_t ahead = 0;
  for (const auto& [seq, ranks] : at) ahead += ranks.size();
  ahead -= behind.size();
  if (behind.size() >= ahead) return {};
  return {behind.begin(), behind.end()};
}

}  // namespace ezpz::verdict
