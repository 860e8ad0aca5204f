// Whatever a log throws at it: attribute() convicts active hosts only, and never on victims and
// context alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "verdict/testing.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {
namespace {

using namespace testing;

class Chaos {
 public:
  explicit Chaos(unsigned seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }

  AttemptRecord record() {
    std::vector<Fact> facts;
    for (int i = below(8); i > 0; --i) facts.push_back(any_fact());
    constexpr int kCodes[] = {0, 1, 2, 137, 139, 143, 255};
    AttemptRecord record = attempt(kCodes[below(7)], std::move(facts), {"n0", "n1", "n2"});
    if (one_in(10)) record.active = {"n1"};
    if (one_in(20)) record.active.clear();
    if (one_in(4)) record.host_of_rank.clear();
    if (one_in(3)) record.retired_earlier = {"n5"};
    record.ending = static_cast<Ending>(below(3));
    constexpr const char* kStates[] = {"RUNNING", "TIMEOUT", "NODE_FAIL", "CANCELLED", "?", ""};
    record.scheduler.job_state = kStates[below(6)];
    if (one_in(2)) record.scheduler.job_state.reset();
    if (one_in(2)) record.scheduler.end_time_s.reset();
    return record;
  }

  Fact any_fact() {
    Fact f;
    f.event = static_cast<Event>(below(7));
    f.kind = static_cast<Kind>(below(16));
    f.role = static_cast<Role>(below(3));
    f.source = static_cast<Source>(below(5));
    constexpr const char* kHosts[] = {"",   "n0",        "n1",      "n2-hsn0.site",
                                      "n5", "elsewhere", "\xff\x01"};
    f.host = kHosts[below(7)];
    f.label = kHosts[below(7)];
    for (int i = below(4); i > 0; --i) f.ranks.push_back(below(14));
    std::sort(f.ranks.begin(), f.ranks.end());
    f.ranks.erase(std::unique(f.ranks.begin(), f.ranks.end()), f.ranks.end());
    constexpr int kSignals[] = {0, 9, 11, 15, 6, -3, 200};
    f.signal = kSignals[below(7)];
    f.code = below(300) - 20;
    f.text = one_in(3) ? "NVRM: Xid (PCI:0): 79" : "text \x80\x01 of some kind";
    f.pattern = "p" + std::to_string(below(5));
    return f;
  }

 private:
  std::mt19937 random_;
};

TEST(AttributionProperty, OnlyActiveHostsAreEverConvictedOrSuspected) {
  for (unsigned seed = 0; seed < 50'000; ++seed) {
    const AttemptRecord record = Chaos(seed).record();
    const Verdict v = judge_attempt(record);
    const std::set<std::string> active(record.active.begin(), record.active.end());
    std::set<std::string> convicted;
    for (const Culprit& culprit : v.culprits) {
      ASSERT_EQ(active.count(culprit.host), 1U) << "seed " << seed << " " << culprit.host;
      ASSERT_TRUE(convicted.insert(culprit.host).second) << "twice, seed " << seed;
      ASSERT_TRUE(culprit.fact == kNoFact || culprit.fact < record.facts.size());
    }
    for (const std::string& host : v.suspects) ASSERT_EQ(active.count(host), 1U);
    ASSERT_FALSE(v.summary.empty());
    ASSERT_EQ(v.summary.find('\n'), std::string::npos);
    ASSERT_GE(v.confidence, 0);
    ASSERT_LE(v.confidence, 1);
    ASSERT_TRUE(std::is_sorted(v.dead_ranks.begin(), v.dead_ranks.end()));
    std::set<size_t> told(v.used.begin(), v.used.end());
    ASSERT_EQ(told.size(), v.used.size());
    for (const SetAside& each : v.set_aside) {
      ASSERT_TRUE(told.insert(each.fact).second) << "used and set aside, seed " << seed;
      ASSERT_FALSE(each.reason.empty()) << "seed " << seed;
    }
    if (!v.culprits.empty()) {
      ASSERT_TRUE(v.kind == Kind::node_failure || v.kind == Kind::gpu_fault);
    }
  }
}

TEST(AttributionProperty, EveryCauseIsEitherUsedOrSetAsideWithAReason) {
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    const AttemptRecord record = Chaos(seed).record();
    const Verdict v = judge_attempt(record);
    std::set<size_t> told(v.used.begin(), v.used.end());
    for (const SetAside& each : v.set_aside) told.insert(each.fact);
    for (size_t i = 0; i < record.facts.size(); ++i) {
      const Fact& f = record.facts[i];
      if (f.role != Role::cause || f.event == Event::placement) continue;
      ASSERT_EQ(told.count(i), 1U) << "seed " << seed << " fact " << i;
    }
  }
}

TEST(AttributionProperty, VictimsAndContextAloneConvictNobody) {
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    AttemptRecord record = Chaos(seed).record();
    for (Fact& f : record.facts) {
      if (f.role == Role::cause) f.role = seed % 2 == 0 ? Role::cascade : Role::context;
      if (f.event == Event::node_lost) f.event = Event::death;
    }
    const Verdict v = judge_attempt(record);
    ASSERT_TRUE(v.culprits.empty()) << "seed " << seed << " " << v.summary;
    ASSERT_TRUE(v.suspects.empty()) << "seed " << seed << " " << v.summary;
  }
}

TEST(AttributionProperty, AUserStopOrALostNodeIsNeverSuccess) {
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    AttemptRecord record = Chaos(seed).record();
    if (record.ending == Ending::user_stop) {
      ASSERT_NE(judge_attempt(record).kind, Kind::success) << "seed " << seed;
    }
    record.ending = Ending::exited;
    record.active = {"n0", "n1", "n2"};
    record.facts.push_back(node_lost("n1"));
    const Verdict v = judge_attempt(record);
    ASSERT_EQ(v.kind, Kind::node_failure) << "seed " << seed << " " << v.summary;
    ASSERT_TRUE(std::any_of(v.culprits.begin(), v.culprits.end(),
                            [](const Culprit& culprit) { return culprit.host == "n1"; }));
  }
}

TEST(AttributionProperty, RenamingEveryHostChangesOnlyTheNames) {
  const auto renamed = [](const std::string& name) { return name.empty() ? name : "z" + name; };
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    const AttemptRecord record = Chaos(seed).record();
    AttemptRecord other = record;
    for (std::string& host : other.active) host = renamed(host);
    for (std::string& host : other.retired_earlier) host = renamed(host);
    for (auto& [rank, host] : other.host_of_rank) host = renamed(host);
    for (Fact& f : other.facts) {
      f.host = renamed(f.host);
      f.label = renamed(f.label);
    }
    const Verdict a = judge_attempt(record);
    const Verdict b = judge_attempt(other);
    ASSERT_EQ(a.kind, b.kind) << "seed " << seed;
    std::vector<std::string> expected = culprits(a);
    for (std::string& host : expected) host = renamed(host);
    ASSERT_EQ(expected, culprits(b)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ezpz::verdict
