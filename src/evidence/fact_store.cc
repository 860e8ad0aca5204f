#include "evidence/fact_store.h"

namespace ezpz::evidence {

namespace {

// Which host an address is: every process of the host says so.
bool is_address(const Fact& fact) { return fact.event == Event::placement && !fact.ip.empty(); }

}  // namespace

bool FactStore::wanted(const Fact& fact) const {
  if (facts_.size() >= max_facts_) return false;
  if (is_address(fact))
    return !addresses_.contains({fact.label, fact.ip}) && addresses_.size() < kMostAddresses;
  // The topology holds every placement; as facts a large job's would crowd out the rest.
  if (fact.event == Event::placement && placements_ >= max_facts_ / 8) return false;
  if (is_equipment(fact.event) && !is_news(fact)) return false;
  if (facts_.size() < max_facts_ / 2) return true;
  if (facts_.size() < max_facts_ - max_facts_ / 10) {
    return !patterns_and_hosts_.contains({fact.pattern, fact.host});
  }
  return !patterns_.contains(fact.pattern);
}

bool FactStore::is_news(const Fact& fact) const {
  const auto known = equipment_.find({fact.event, fact.reason});
  if (known == equipment_.end()) return equipment_.size() < kMostEquipment;
  return known->second.size() < kMostHosts && !known->second.contains(fact.label);
}

bool FactStore::is_settled(const std::string& pattern) const {
  return facts_.size() >= max_facts_ / 2 && patterns_and_hosts_.contains({pattern, ""});
}

const Fact* FactStore::add(Fact fact) {
  if (!wanted(fact)) return nullptr;
  if (is_address(fact)) {
    addresses_.emplace(fact.label, fact.ip);
  } else if (fact.event == Event::placement) {
    ++placements_;
  }
  if (is_equipment(fact.event)) equipment_[{fact.event, fact.reason}].insert(fact.label);
  patterns_.insert(fact.pattern);
  patterns_and_hosts_.emplace(fact.pattern, fact.host);
  facts_.push_back(std::move(fact));
  return &facts_.back();
}

}  // namespace ezpz::evidence
