#include "verdict/network.h"

#include <algorithm>

#include "base/text.h"
#include "verdict/finding.h"

namespace ezpz::verdict {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool same_network(std::string_view a, std::string_view b) {
  const std::string left = lower(std::string(trim(a)));
  const std::string right = lower(std::string(trim(b)));
  const auto is_last_word_of = [](const std::string& word, const std::string& text) {
    return !word.empty() && text.ends_with(" " + word);
  };
  return left == right || is_last_word_of(left, right) || is_last_word_of(right, left);
}

std::vector<NetworkUse> uses_of(Event equipment, const std::vector<Fact>& facts,
                                const NodeKey& node_key) {
  std::vector<NetworkUse> uses;
  for (size_t i = 0; i < facts.size(); ++i) {
    const Fact& fact = facts[i];
    if (fact.event != equipment || fact.reason.empty()) continue;
    const std::string& spelled = fact.host.empty() ? fact.label : fact.host;
    const std::string host = spelled.empty() || !node_key ? spelled : node_key(spelled);
    auto use = std::find_if(uses.begin(), uses.end(), [&](const NetworkUse& known) {
      return lower(known.name) == lower(fact.reason);
    });
    if (use == uses.end()) use = uses.insert(uses.end(), {fact.reason, {}, i});
    if (!host.empty() && !has(use->hosts, host)) use->hosts.push_back(host);
  }
  return uses;
}

std::optional<WrongNetwork> wrong_network(const NetworkWish& wish, const std::vector<Fact>& facts,
                                          const NodeKey& node_key) {
  if (wish.expected.empty()) return std::nullopt;
  WrongNetwork wrong;
  const std::vector<NetworkUse> uses = uses_of(Event::network, facts, node_key);
  for (const NetworkUse& use : uses) {
    if (same_network(use.name, wish.expected)) continue;
    if (wrong.name.empty()) wrong.name = use.name;
    wrong.facts.push_back(use.fact);
    for (const std::string& host : use.hosts) {
      if (!has(wrong.hosts, host)) wrong.hosts.push_back(host);
    }
  }
  if (wrong.name.empty()) return std::nullopt;
  for (const NetworkUse& use : uses) {
    if (!same_network(use.name, wish.expected)) continue;
    for (const std::string& host : use.hosts) {
      if (!has(wrong.hosts, host) && !has(wrong.right, host)) wrong.right.push_back(host);
    }
  }
  return wrong;
}

std::string in_words(const WrongNetwork& wrong, const NetworkWish& wish) {
  constexpr size_t kNamed = 4;
  std::string text = "the ranks use the network " + wrong.name + " instead of " + wish.expected;
  if (wrong.hosts.empty()) return text;
  if (wrong.one_alone()) {
    return text + " on " + wrong.hosts.front() + " alone, and not on its " +
           std::to_string(wrong.right.size()) + (wrong.right.size() == 1 ? " peer" : " peers");
  }
  std::vector<std::string> named = wrong.hosts;
  named.resize(std::min(named.size(), kNamed));
  text += " on " + host_words(named);
  if (wrong.hosts.size() > kNamed) {
    text += " and " + std::to_string(wrong.hosts.size() - kNamed) + " more hosts";
  }
  return text;
}

}  // namespace ezpz::verdict
