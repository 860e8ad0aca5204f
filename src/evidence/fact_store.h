// The facts of one stream, bounded: a log of nothing but errors must not fill the memory, and what
// came late must not be lost in what came often.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fact.h"

namespace ezpz::evidence {

class FactStore {
 public:
  // At most max_facts are kept. The first half of that is for whatever comes first; then only the
  // first of each pattern and host is kept; the last tenth is for patterns not seen at all yet.
  explicit FactStore(size_t max_facts) : max_facts_(max_facts) {}

  // The kept fact, or nullptr when there was no room for it.
  const Fact* add(Fact fact);
  // Of what each rank says of the equipment (base/fact.h) one a host is kept, for few hosts.
  static constexpr size_t kMostHosts = 256;
  static constexpr size_t kMostEquipment = 64;  // different words, over all patterns
  // No further fact of this pattern that names no host will be kept.
  [[nodiscard]] bool is_settled(const std::string& pattern) const;
  [[nodiscard]] const std::vector<Fact>& facts() const { return facts_; }

 private:
  [[nodiscard]] bool wanted(const Fact& fact) const;
  [[nodiscard]] bool is_news(const Fact& fact) const;

  size_t max_facts_;
  size_t placements_ = 0;
  static constexpr size_t kMostAddresses = 1024;
  std::set<std::pair<std::string, std::string>> addresses_;  // of hosts, by label
  std::vector<Fact> facts_;
  std::set<std::string> patterns_;
  std::set<std::pair<std::string, std::string>> patterns_and_hosts_;
  // What was said of the equipment, and on which hosts.
  std::map<std::pair<Event, std::string>, std::set<std::string>> equipment_;
};

}  // namespace ezpz::evidence
