// What the live world does with the ranks' words about their network: records it, tells a fallback
// at once, and ends an attempt that runs on another network than was required.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "failover/live_attempt.h"
#include "failover/live_world.h"
#include "failover/record_json.h"
#include "verdict/network.h"

namespace ezpz::failover {
namespace {

// For the ranks of other hosts, after the first has spoken.
constexpr double kOthersWait_s = 1;

std::string as_sentence(const verdict::WrongNetwork& wrong, const verdict::NetworkWish& wish) {
  std::string text = verdict::in_words(wrong, wish);
  text += wish.price.empty() ? ": several times slower between nodes (8.3 times on Perlmutter)"
                             : ": " + wish.price;
  if (!wish.remedy.empty()) text += "; try: " + wish.remedy;
  return text;
}

// "2.29.7" of "2.29.7+cuda13.0"
std::string plain_version(const std::string& version) {
  return version.substr(0, version.find_first_not_of("0123456789."));
}

}  // namespace

void LiveWorld::hear_of_equipment(Attempt& attempt, const Fact& fact) {
  attempt.equipment.push_back(fact);
  if (fact.event == Event::network) {
    if (!fact.label.empty()) attempt.heard.insert(node_key(fact.label));
    const bool all_spoke = attempt.heard.size() >= attempt.hosts.size();
    // Who speaks when all have spoken is news at once only if he differs.
    const bool differs = !settings_.network.expected.empty() && !attempt.network_wrong &&
                         !verdict::same_network(fact.reason, settings_.network.expected);
    if (all_spoke && (!attempt.network_settled || differs)) return settle_network(attempt, false);
  }
  if (attempt.network_timed) return;
  attempt.network_timed = true;
  loop_.after(kOthersWait_s, [this, &attempt, alive = std::weak_ptr<int>(attempt.alive)] {
    if (alive.expired()) return;
    attempt.network_timed = false;
    settle_network(attempt, false);
  });
}

void LiveWorld::settle_network(Attempt& attempt, bool at_the_end) {
  const verdict::NetworkWish& wish = settings_.network;
  const auto key = [this](std::string_view name) { return node_key(name); };
  if (at_the_end && attempt.heard.empty() && settings_.watch_network) {
    const std::string why =
        "no line told which network the ranks use" +
        (settings_.network_unseen.empty() ? std::string() : ": " + settings_.network_unseen);
    if (journal_) {
      journal_->note("unknown", {{"what", "network"}, {"attempt", attempt.number}, {"why", why}});
    }
    if (wish.required) log::warning(why + "; --require-net could not check it");
  }
  if (attempt.equipment.size() == attempt.equipment_told) return;
  attempt.equipment_told = attempt.equipment.size();
  attempt.network_settled = true;
  const std::optional<verdict::WrongNetwork> wrong =
      verdict::wrong_network(wish, attempt.equipment, key);
  Json context = equipment_json(attempt.equipment, key);
  context["attempt"] = attempt.number;
  context["expected"] = wish.expected;
  context["required"] = wish.required;
  if (!settings_.nccl_asked.empty()) context["nccl_asked"] = settings_.nccl_asked;
  if (wrong) {
    context["fallback"] = {{"network", wrong->name},
                           {"hosts", wrong->hosts},
                           {"one_host_alone", wrong->one_alone()},
                           {"remedy", wish.remedy},
                           {"price", wish.price}};
  }
  tell("network", context);
  if (journal_) journal_->note("network", context);
  for (const verdict::NetworkUse& use : verdict::uses_of(Event::version, attempt.equipment, key)) {
    const std::string loaded = plain_version(use.name);
    if (settings_.nccl_asked.empty() || loaded == settings_.nccl_asked || version_told_) continue;
    version_told_ = true;
    log::warning(fmt::format(
        "NCCL {} is used, though {} was asked for by the environment: the program brings its own "
        "libnccl (PyTorch does), and the module's has no effect",
        printable(loaded, 40), printable(settings_.nccl_asked, 40)));
  }
  if (!wrong || attempt.network_wrong) return;
  attempt.network_wrong = true;
  log::warning(printable(as_sentence(*wrong, wish), 600));
  if (wish.required && !at_the_end) {
    attempt.supervisor->stop(supervise::StopCause::guard, 0);
  }
}

}  // namespace ezpz::failover
