#include "failover/loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>

namespace ezpz::failover {
namespace {

// A world of tables: each attempt's record is prepared, everything asked is written down.
class TableWorld : public World {
 public:
  std::deque<std::function<AttemptOutcome(const AttemptInput&)>> attempts;
  NodeStates states;
  FenceOutcome fence_answer = [] {
    FenceOutcome outcome;
    outcome.ran = true;
    return outcome;
  }();
  verdict::ProbeOutcome probe_answer = [] {
    verdict::ProbeOutcome outcome;
    outcome.ran = true;
    return outcome;
  }();
  std::optional<double> left_s;
  bool stop = false;
  bool end_is_near = false;

  std::vector<AttemptInput> inputs;
  std::vector<std::pair<std::string, Json>> events;
  std::string bad_nodes;
  double paused_s = 0;

  AttemptOutcome run_attempt(const AttemptInput& input) override {
    inputs.push_back(input);
    EXPECT_FALSE(attempts.empty()) << "more attempts than the test has";
    if (attempts.empty()) return {};
    auto next = attempts.front();
    attempts.pop_front();
    return next(input);
  }
  NodeStates node_states(const std::vector<Node>&) override { return states; }
  std::optional<double> time_left_s() override { return left_s; }
  verdict::ProbeOutcome probe(const std::vector<Node>&) override { return probe_answer; }
  FenceOutcome fence(const std::vector<Node>&, const std::vector<Node>&) override {
    FenceOutcome answer = fence_answer;
    fence_answer.uncleared.clear();
    return answer;
  }
  void pause(double seconds) override { paused_s += seconds; }
  bool stop_requested() override { return stop; }
  bool end_announced() override { return end_is_near; }
  void record(std::string_view name, const Json& context) override {
    events.emplace_back(std::string(name), context);
  }
  void publish_bad_nodes(const std::string& text) override { bad_nodes = text; }
  void say(const std::string&) override {}
  std::string node_key(std::string_view spelled) override { return std::string(spelled); }
  std::string remedy_of(std::string_view) override { return ""; }

  [[nodiscard]] size_t position(const std::string& name, size_t from = 0) const {
    for (size_t i = from; i < events.size(); ++i) {
      if (events[i].first == name) return i;
    }
    return events.size();
  }
};

AttemptOutcome ended(const AttemptInput& input, Exit exit, int64_t last_step) {
  AttemptOutcome outcome;
  outcome.started = true;
  outcome.record.attempt = input.attempt;
  for (const Node& host : input.active) outcome.record.active.push_back(host.key);
  for (size_t i = 0; i < input.active.size(); ++i) {
    outcome.record.host_of_rank[static_cast<int>(i)] = input.active[i].spelled;
  }
  outcome.record.exit = exit;
  if (last_step > 0) {
    outcome.record.progress.first_step = 1;
    outcome.record.progress.last_step = last_step;
    outcome.record.progress.interval = 1;
  }
  return outcome;
}

auto succeeds() {
  return [](const AttemptInput& input) { return ended(input, Exit{.code = 0}, 100); };
}

// The host's only rank is SIGKILLed.
auto loses(const std::string& host, int64_t step) {
  return [host, step](const AttemptInput& input) {
    AttemptOutcome outcome = ended(input, Exit{.code = 137}, step);
    Fact fact;
    fact.line = 7;
    fact.text = "srun: error: " + host + ": task 1: Killed";
    fact.kind = Kind::node_failure;
    fact.role = Role::cause;
    fact.event = Event::death;
    fact.host = host;
    fact.signal = 9;
    for (const auto& [rank, name] : outcome.record.host_of_rank) {
      if (name == host) fact.ranks.push_back(rank);
    }
    outcome.record.facts.push_back(fact);
    return outcome;
  };
}

Allocation four_hosts() {
  return Allocation::split(make_nodes({"a", "b", "c", "d"}, {}), 2).value();
}

TEST(FailoverLoop, ALostNodeIsSwappedAtOnceAndTheJobGoesOn) {
  TableWorld world;
  world.attempts = {loses("b", 10), succeeds()};
  Allocation allocation = four_hosts();
  const LoopResult result = run_failover(world, allocation, {});
  EXPECT_EQ(result.stop_reason, "success");
  EXPECT_EQ(result.attempts, 2);
  EXPECT_EQ(spellings(world.inputs.at(1).active), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(spellings(world.inputs.at(1).excluded), (std::vector<std::string>{"b"}));
  EXPECT_EQ(world.inputs.at(1).hostfile_text, "a\nc\n");
  EXPECT_EQ(world.bad_nodes, "b  scraped  attempt=1  verdict=node_failure\n");
  EXPECT_EQ(world.paused_s, 0) << "no backoff before a certain swap";
}

TEST(FailoverLoop, EveryDecisionIsRecordedBeforeTheActionItAnnounces) {
  TableWorld world;
  world.attempts = {loses("b", 10), succeeds()};
  Allocation allocation = four_hosts();
  run_failover(world, allocation, {});
  const size_t end = world.position("attempt_end");
  const size_t verdict = world.position("verdict");
  const size_t decision = world.position("decision");
  const size_t swap = world.position("swap");
  EXPECT_LT(end, verdict);
  EXPECT_LT(verdict, decision);
  EXPECT_LT(decision, swap);
  EXPECT_LT(swap, world.position("attempt_end", end + 1));
  EXPECT_EQ(world.events.back().first, "stop");
}

TEST(FailoverLoop, ASpareTheSchedulerCallsDownIsSkipped) {
  TableWorld world;
  world.states.states = {{"c", "DOWN*"}, {"d", "IDLE"}};
  world.attempts = {loses("b", 10), succeeds()};
  Allocation allocation = four_hosts();
  run_failover(world, allocation, {});
  EXPECT_EQ(spellings(world.inputs.at(1).active), (std::vector<std::string>{"a", "d"}));
  EXPECT_NE(world.bad_nodes.find("c  scheduler"), std::string::npos) << world.bad_nodes;
}

TEST(FailoverLoop, AnUnansweredQuestionAboutSparesTakesOutNobody) {
  TableWorld world;
  world.states.trouble = "scontrol: no answer in time";
  world.attempts = {loses("b", 10), succeeds()};
  Allocation allocation = four_hosts();
  run_failover(world, allocation, {});
  EXPECT_EQ(spellings(world.inputs.at(1).active), (std::vector<std::string>{"a", "c"}));
  EXPECT_LT(world.position("unknown"), world.events.size());
}

TEST(FailoverLoop, AKeptHostThatCannotBeClearedIsReplacedToo) {
  TableWorld world;
  world.attempts = {loses("b", 10), succeeds()};
  world.fence_answer.uncleared = {{"a", "pid 12 is in D state"}};
  world.fence_answer.provenance = {{"a", verdict::Provenance::unkillable}};
  Allocation allocation = four_hosts();
  run_failover(world, allocation, {});
  EXPECT_EQ(spellings(world.inputs.at(1).active), (std::vector<std::string>{"d", "c"}));
  EXPECT_NE(world.bad_nodes.find("a  unkillable"), std::string::npos) << world.bad_nodes;
}

TEST(FailoverLoop, TheLastLossIsWrittenDownWhenNoSpareIsLeft) {
  TableWorld world;
  world.attempts = {loses("b", 10), loses("c", 40), loses("d", 70)};
  Allocation allocation = four_hosts();
  const LoopResult result = run_failover(world, allocation, {});
  EXPECT_EQ(result.stop_reason, "exhausted");
  EXPECT_EQ(result.attempts, 3);
  EXPECT_NE(world.bad_nodes.find("d  scraped  attempt=3"), std::string::npos) << world.bad_nodes;
}

TEST(FailoverLoop, AStaleStepMakesTheNextLaunchOverlap) {
  TableWorld world;
  world.attempts = {loses("b", 10), succeeds()};
  world.fence_answer.stale_step = true;
  Allocation allocation = four_hosts();
  run_failover(world, allocation, {});
  EXPECT_FALSE(world.inputs.at(0).overlap);
  EXPECT_TRUE(world.inputs.at(1).overlap);
}

TEST(FailoverLoop, AStopAskedForBetweenAttemptsEndsTheLoop) {
  TableWorld world;
  world.attempts = {[&world](const AttemptInput& input) {
    world.stop = true;
    return loses("b", 10)(input);
  }};
  Allocation allocation = four_hosts();
  EXPECT_EQ(run_failover(world, allocation, {}).stop_reason, "cancelled");
}

TEST(FailoverLoop, TooLittleTimeLeftStopsInsteadOfRelaunching) {
  TableWorld world;
  world.left_s = 5;
  world.attempts = {loses("b", 10)};
  Allocation allocation = four_hosts();
  EXPECT_EQ(run_failover(world, allocation, {}).stop_reason, "walltime_near");
}

TEST(FailoverLoop, AnAnnouncedEndForbidsARelaunchItCannotPayFor) {
  for (const double left_s : {20.0, 600.0}) {
    TableWorld world;
    world.end_is_near = true;
    world.left_s = left_s;
    const auto told = [](const AttemptInput& input) {
      AttemptOutcome outcome = loses("b", 10)(input);
      outcome.record.user_asked_stop_by_signal = true;
      return outcome;
    };
    world.attempts = {told, succeeds()};
    Allocation allocation = four_hosts();
    const LoopResult result = run_failover(world, allocation, {});
    EXPECT_EQ(result.stop_reason, left_s > 100 ? "success" : "walltime_near") << left_s;
  }
}

TEST(FailoverLoop, AnAnnouncedEndWithUnknownTimeLeftForbidsARelaunch) {
  TableWorld world;
  world.end_is_near = true;
  world.attempts = {loses("b", 10)};
  Allocation allocation = four_hosts();
  EXPECT_NE(run_failover(world, allocation, {}).stop_reason, "success");
}

TEST(FailoverLoop, RelaunchesAreBounded) {
  TableWorld world;
  world.attempts = {loses("b", 10), loses("c", 40)};
  Allocation allocation = four_hosts();
  LoopSettings settings;
  settings.max_relaunches = 1;
  EXPECT_EQ(run_failover(world, allocation, settings).stop_reason, "max_retries");
}

TEST(FailoverLoop, ALauncherThatCannotBeStartedIsSaidNotRetriedForEver) {
  TableWorld world;
  world.attempts = {[](const AttemptInput&) {
    AttemptOutcome outcome;
    outcome.trouble = "command not found: srun";
    return outcome;
  }};
  Allocation allocation = four_hosts();
  EXPECT_EQ(run_failover(world, allocation, {}).stop_reason, "launch_failed");
}

}  // namespace
}  // namespace ezpz::failover
