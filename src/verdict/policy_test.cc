#include "verdict/policy.h"

#include <gtest/gtest.h>

#include <set>

#include "verdict/policy_table.h"
#include "verdict/stop_reason.h"
#include "verdict/testing.h"

namespace ezpz::verdict {
namespace {

using namespace testing;
using History = std::vector<PastAttempt>;

Budget plenty() {
  Budget budget;
  budget.retries_left = 10;
  budget.spares_left = 3;
  return budget;
}

Verdict of(Kind kind) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.summary = "a verdict of " + std::string(to_string(kind));
  return verdict;
}

Verdict convicting(Kind kind, const std::string& host, std::vector<int> ranks = {4, 5, 6, 7}) {
  Verdict verdict = of(kind);
  verdict.dead_ranks = ranks;
  verdict.culprits.push_back({host, Provenance::scraped, std::move(ranks), 0});
  return verdict;
}

PastAttempt past(const Verdict& verdict, evidence::Progress progress = {}) {
  AttemptRecord record = attempt(1, {});
  record.progress = progress;
  Decision decision;
  decision.action = verdict.culprits.empty() ? Action::retry_same : Action::swap;
  decision.swap_out = verdict.culprits;
  return remember(record, verdict, decision);
}

PastAttempt blind_past(Kind kind, const std::string& host, evidence::Progress progress = {}) {
  PastAttempt attempt = past(of(kind), progress);
  attempt.action = Action::swap;
  attempt.swapped_out.push_back({host, Provenance::blind, {}, kNoFact});
  return attempt;
}

AttemptRecord at(evidence::Progress progress = {}) {
  AttemptRecord record = attempt(1, {}, {"n0", "n1", "n2", "n3"});
  record.progress = progress;
  return record;
}

ProbeOutcome healthy() {
  ProbeOutcome outcome;
  outcome.ran = true;
  return outcome;
}

ProbeOutcome sick(std::vector<std::string> hosts) {
  ProbeOutcome outcome = healthy();
  outcome.failed = std::move(hosts);
  return outcome;
}

void expect_stop(const Decision& decision, const std::string& reason) {
  EXPECT_EQ(decision.action, Action::stop) << decision.why;
  EXPECT_EQ(decision.stop_reason, reason) << decision.why;
  EXPECT_FALSE(decision.why.empty());
  EXPECT_FALSE(meaning_of_stop(decision.stop_reason).empty()) << decision.stop_reason;
}

void expect_swap(const Decision& decision, const std::string& host, Provenance provenance) {
  EXPECT_EQ(decision.action, Action::swap) << decision.why;
  ASSERT_EQ(decision.swap_out.size(), 1U);
  EXPECT_EQ(decision.swap_out[0].host, host);
  EXPECT_EQ(decision.swap_out[0].provenance, provenance);
  EXPECT_EQ(decision.backoff_s, 0);
  EXPECT_TRUE(decision.stop_reason.empty());
}

constexpr Kind kPlaceKinds[] = {Kind::fabric_fault, Kind::collective_timeout, Kind::hang,
                                Kind::gpu_fault, Kind::node_failure};
constexpr Kind kPatientKinds[] = {Kind::filesystem_fault, Kind::launcher_fault, Kind::port_in_use};
constexpr Kind kProgramKinds[] = {Kind::oom, Kind::app_error};

// ---- the table, cell by cell

TEST(PolicyTable, HasOneRowPerKindInTheirOrder) {
  const auto table = policy_table();
  ASSERT_EQ(table.size(), static_cast<size_t>(Kind::unknown) + 1);
  for (size_t i = 0; i < table.size(); ++i) EXPECT_EQ(table[i].kind, static_cast<Kind>(i));
}

TEST(PolicyTable, EveryStopReasonIsExplainedOnceAndIsOneWord) {
  std::set<std::string_view> words;
  for (const StopReason& reason : stop_reasons()) {
    EXPECT_TRUE(words.insert(reason.word).second) << reason.word;
    EXPECT_EQ(reason.word.find(' '), std::string_view::npos);
    EXPECT_NE(reason.meaning.back(), '.');
  }
  for (const Row& row : policy_table()) EXPECT_EQ(words.count(row.stop_reason), 1U);
}

TEST(Policy, AnEndingStopsWithItsOwnWord) {
  for (const Kind kind : {Kind::success, Kind::walltime, Kind::cancelled, Kind::preempted}) {
    expect_stop(decide(at(steps(1, 9)), of(kind), {}, plenty()), std::string(to_string(kind)));
  }
}

TEST(Policy, AConvictedHostIsSwappedAtOnceTheFirstTimeAndAgain) {
  for (const Kind kind : {Kind::node_failure, Kind::gpu_fault}) {
    expect_swap(decide(at(), convicting(kind, "n1"), {}, plenty()), "n1", Provenance::scraped);
    const History before = {past(convicting(kind, "n9", {0, 1, 2, 3}))};
    expect_swap(decide(at(), convicting(kind, "n1"), before, plenty()), "n1", Provenance::scraped);
  }
}

TEST(Policy, MoreConvictedHostsThanSparesIsExhausted) {
  Budget budget = plenty();
  budget.spares_left = 0;
  expect_stop(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget), "exhausted");
  budget.spares_left = 1;
  Verdict two = convicting(Kind::node_failure, "n1");
  two.culprits.push_back({"n2", Provenance::scraped, {8}, 1});
  expect_stop(decide(at(), two, {}, budget), "exhausted");
  budget.spares_left = 2;
  EXPECT_EQ(decide(at(), two, {}, budget).swap_out.size(), 2U);
}

TEST(Policy, AStopNamesWhomASwapWouldHaveTakenSoThatTheRecordCan) {
  Budget budget = plenty();
  budget.spares_left = 0;
  EXPECT_EQ(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget).swap_out.size(), 1U);
  budget = plenty();
  budget.retries_left = 0;
  EXPECT_EQ(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget).swap_out.size(), 1U);
  // Never on a guess, and never for what the seat rule has cleared.
  budget.blind = Blind::always;
  EXPECT_TRUE(decide(at(steps(1, 5)), of(Kind::hang), {}, budget).swap_out.empty());
  const History before = {past(convicting(Kind::node_failure, "n9"), steps(1, 30))};
  EXPECT_TRUE(decide(at(steps(21, 30)), convicting(Kind::node_failure, "n1"), before, plenty())
                  .swap_out.empty());
}

TEST(Policy, MinNodesLetsTheJobShrinkWhenSparesRunOut) {
  Budget budget = plenty();
  budget.spares_left = 0;
  budget.may_shrink_by = 1;
  expect_swap(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget), "n1",
              Provenance::scraped);
}

TEST(Policy, TroubleThatNamesNobodyIsProbedTheFirstTime) {
  for (const Kind kind : kPlaceKinds) {
    EXPECT_EQ(decide(at(), of(kind), {}, plenty()).action, Action::probe);
    EXPECT_EQ(decide(at(steps(1, 5)), of(kind), {}, plenty()).action, Action::probe);
  }
}

TEST(Policy, WhatFailsTheProbeIsSwapped) {
  for (const Kind kind : kPlaceKinds) {
    expect_swap(decide_after_probe(at(), of(kind), sick({"n2"}), {}, plenty()), "n2",
                Provenance::probed);
  }
}

TEST(Policy, AProbeThatNothingFailsMeansTheSameHostsOnceMore) {
  for (const Kind kind : kPlaceKinds) {
    const Decision d = decide_after_probe(at(), of(kind), healthy(), {}, plenty());
    EXPECT_EQ(d.action, Action::retry_same);
    EXPECT_TRUE(d.swap_out.empty());
  }
}

TEST(Policy, AgainWithoutProgressIsProbedAgainAndThenGuessedIfAllowed) {
  for (const Kind kind : kPlaceKinds) {
    const History before = {past(of(kind), steps(1, 10))};
    const AttemptRecord now = at(steps(5, 7));
    EXPECT_EQ(decide(now, of(kind), before, plenty()).action, Action::probe);
    expect_swap(decide_after_probe(now, of(kind), healthy(), before, plenty()), "n1",
                Provenance::blind);
    expect_swap(decide_after_probe(now, of(kind), sick({"n3"}), before, plenty()), "n3",
                Provenance::probed);
  }
}

TEST(Policy, ProgressInBetweenMakesItTheFirstTimeAgain) {
  const History before = {past(of(Kind::hang), steps(1, 10))};
  const Decision d =
      decide_after_probe(at(steps(5, 20)), of(Kind::hang), healthy(), before, plenty());
  EXPECT_EQ(d.action, Action::retry_same);
}

TEST(Policy, BlindNeverStopsInsteadOfGuessing) {
  Budget budget = plenty();
  budget.blind = Blind::never;
  const History before = {past(of(Kind::hang), steps(1, 10))};
  const AttemptRecord now = at(steps(5, 7));
  EXPECT_EQ(decide(now, of(Kind::hang), before, budget).action, Action::probe);
  expect_stop(decide_after_probe(now, of(Kind::hang), healthy(), before, budget), "no_evidence");
}

TEST(Policy, BlindAlwaysGuessesAtOnceInsteadOfProbing) {
  Budget budget = plenty();
  budget.blind = Blind::always;
  expect_swap(decide(at(steps(1, 5)), of(Kind::hang), {}, budget), "n1", Provenance::blind);
  budget.spares_left = 0;
  EXPECT_EQ(decide(at(steps(1, 5)), of(Kind::hang), {}, budget).action, Action::probe);
}

TEST(Policy, AGuessNeedsASpareAndNeverShrinksTheJob) {
  Budget budget = plenty();
  budget.spares_left = 0;
  budget.may_shrink_by = 2;
  const History before = {past(of(Kind::hang), steps(1, 10))};
  expect_stop(decide_after_probe(at(steps(5, 7)), of(Kind::hang), healthy(), before, budget),
              "exhausted");
}

TEST(Policy, AFaultThatComesBackWithoutTheGuessedHostClearsIt) {
  const History before = {past(of(Kind::hang), steps(1, 10)),
                          blind_past(Kind::hang, "n1", steps(5, 7))};
  const Decision d =
      decide_after_probe(at(steps(5, 8)), of(Kind::hang), healthy(), before, plenty());
  EXPECT_EQ(d.exonerated, std::vector<std::string>{"n1"});
  expect_stop(d, "stuck");
  // Getting further without it clears nobody.
  EXPECT_TRUE(decide(at(steps(5, 20)), of(Kind::hang), before, plenty()).exonerated.empty());
}

TEST(Policy, AProbeThatCannotRunIsSaidAndTheLoopGoesOn) {
  ProbeOutcome unavailable;
  unavailable.trouble = "srun refused";
  Decision d = decide_after_probe(at(), of(Kind::hang), unavailable, {}, plenty());
  EXPECT_EQ(d.action, Action::retry_same);
  EXPECT_NE(d.why.find("probe unavailable"), std::string::npos);
  Budget budget = plenty();
  budget.can_probe = false;
  d = decide(at(), of(Kind::hang), {}, budget);
  EXPECT_EQ(d.action, Action::retry_same);
  EXPECT_NE(d.why.find("probe unavailable"), std::string::npos);
}

TEST(Policy, FailedAnswersOfAProbeThatDidNotRunConvictNobody) {
  ProbeOutcome outcome = sick({"n1"});
  outcome.ran = false;
  EXPECT_EQ(decide_after_probe(at(), of(Kind::hang), outcome, {}, plenty()).action,
            Action::retry_same);
}

TEST(Policy, AProbeThatEveryActiveHostFailsSpeaksAgainstTheProbe) {
  const Decision d =
      decide_after_probe(at(), of(Kind::hang), sick({"n0", "n1", "n2", "n3"}), {}, plenty());
  EXPECT_EQ(d.action, Action::retry_same);
  EXPECT_NE(d.why.find("against the probe"), std::string::npos) << d.why;
}

TEST(Policy, SparesThatFailTheProbeDoNotCountAsSpares) {
  Budget budget = plenty();
  budget.spares_left = 1;
  expect_stop(decide_after_probe(at(), of(Kind::hang), sick({"n1", "s1"}), {}, budget),
              "exhausted");
}

TEST(Policy, StorageLauncherAndPortAreTriedThreeTimesWithGrowingPauses) {
  for (const Kind kind : kPatientKinds) {
    History history;
    for (const double pause : {5.0, 15.0, 45.0}) {
      const Decision d = decide(at(), of(kind), history, plenty());
      EXPECT_EQ(d.action, Action::retry_same);
      EXPECT_EQ(d.backoff_s, pause);
      EXPECT_TRUE(d.new_port);
      history.push_back(past(of(kind)));
    }
    expect_stop(decide(at(), of(kind), history, plenty()), std::string(to_string(kind)));
    // Progress gives it all its tries again.
    EXPECT_EQ(decide(at(steps(1, 5)), of(kind), history, plenty()).backoff_s, 5.0);
  }
}

TEST(Policy, AFullDiskAtTheSameCheckpointHasItsTriesAndIsNotStuckAtOnce) {
  const History before = {past(of(Kind::filesystem_fault), steps(1, 100))};
  EXPECT_EQ(decide(at(steps(50, 100)), of(Kind::filesystem_fault), before, plenty()).action,
            Action::retry_same);
}

TEST(Policy, AProgramErrorAfterProgressIsRetriedOnTheSameHosts) {
  for (const Kind kind : kProgramKinds) {
    const Decision d = decide(at(steps(1, 30)), of(kind), {}, plenty());
    EXPECT_EQ(d.action, Action::retry_same);
    EXPECT_TRUE(d.swap_out.empty());
  }
}

TEST(Policy, AProgramErrorWithStepsButNothingNewIsStuck) {
  for (const Kind kind : kProgramKinds) {
    const History before = {past(of(Kind::hang), steps(1, 30))};
    expect_stop(decide(at(steps(20, 25)), of(kind), before, plenty()), "stuck");
  }
}

TEST(Policy, AProgramThatFailsBeforeItsFirstStepTwiceIsStuckPreTraining) {
  for (const Kind kind : kProgramKinds) {
    EXPECT_EQ(decide(at(), of(kind), {}, plenty()).action, Action::retry_same);
    expect_stop(decide(at(), of(kind), {past(of(kind))}, plenty()), "stuck_pre_training");
  }
}

TEST(Policy, AProgramErrorAtTheStartAfterASwapGetsItsOneTry) {
  const History before = {past(convicting(Kind::node_failure, "n9", {0, 1}), steps(1, 30))};
  EXPECT_EQ(decide(at(), of(Kind::app_error), before, plenty()).action, Action::retry_same);
}

TEST(Policy, AProgramErrorAtTheStartAfterItsOwnCrashIsStuck) {
  const History before = {past(of(Kind::app_error), steps(1, 30))};
  expect_stop(decide(at(), of(Kind::app_error), before, plenty()), "stuck");
}

TEST(Policy, AnEnvironmentFaultStopsAtOnceWithTheRemedy) {
  Verdict verdict = of(Kind::env_fault);
  verdict.remedy = "load the module";
  const Decision d = decide(at(), verdict, {}, plenty());
  expect_stop(d, "env_fault");
  EXPECT_NE(d.why.find("load the module"), std::string::npos);
}

TEST(Policy, TheUnknownIsRetriedOnceThenProbedThenGuessed) {
  EXPECT_EQ(decide(at(steps(1, 10)), of(Kind::unknown), {}, plenty()).action, Action::retry_same);
  const History before = {past(of(Kind::unknown), steps(1, 10))};
  const AttemptRecord now = at(steps(5, 7));
  EXPECT_EQ(decide(now, of(Kind::unknown), before, plenty()).action, Action::probe);
  expect_swap(decide_after_probe(now, of(Kind::unknown), healthy(), before, plenty()), "n1",
              Provenance::blind);
}

// ---- the rules over the table

TEST(Policy, AnEnvironmentThatWorkedBeforeIsProbedBeforeItStops) {
  const History before = {past(convicting(Kind::node_failure, "n9", {0, 1}), steps(1, 30))};
  const Verdict refused = of(Kind::env_fault);
  EXPECT_EQ(decide(at(), refused, before, plenty()).action, Action::probe);
  expect_swap(decide_after_probe(at(), refused, sick({"n2"}), before, plenty()), "n2",
              Provenance::probed);
  expect_stop(decide_after_probe(at(), refused, healthy(), before, plenty()), "env_fault");
  Budget budget = plenty();
  budget.can_probe = false;
  expect_stop(decide(at(), refused, before, budget), "env_fault");
}

TEST(Policy, ASuspectIsProbedAndSwappedOnlyIfItFails) {
  for (const Kind kind : {Kind::env_fault, Kind::filesystem_fault}) {
    Verdict verdict = of(kind);
    verdict.suspects = {"n2"};
    EXPECT_EQ(decide(at(), verdict, {}, plenty()).action, Action::probe);
    expect_swap(decide_after_probe(at(), verdict, sick({"n2"}), {}, plenty()), "n2",
                Provenance::probed);
  }
  Verdict verdict = of(Kind::env_fault);
  verdict.suspects = {"n2"};
  expect_stop(decide_after_probe(at(), verdict, healthy(), {}, plenty()), "env_fault");
  verdict.kind = Kind::filesystem_fault;
  const Decision d = decide_after_probe(at(), verdict, healthy(), {}, plenty());
  EXPECT_EQ(d.action, Action::retry_same);
  EXPECT_EQ(d.backoff_s, 5);
}

TEST(Policy, AUserStopIsNeverFollowedByARelaunch) {
  AttemptRecord record = at(steps(1, 9));
  record.ending = Ending::user_stop;
  expect_stop(decide(record, convicting(Kind::node_failure, "n1"), {}, plenty()), "cancelled");
  expect_stop(decide(record, of(Kind::cancelled), {}, plenty()), "cancelled");
  expect_stop(decide(record, of(Kind::walltime), {}, plenty()), "walltime");
}

TEST(Policy, AForbiddenRelaunchStopsButKeepsTheWordOfACleanEnd) {
  Budget budget = plenty();
  budget.relaunch_forbidden = true;
  AttemptRecord record = at();
  expect_stop(decide(record, of(Kind::hang), {}, budget), "cancelled");
  expect_stop(decide(record, of(Kind::success), {}, budget), "success");
  record.user_asked_stop_by_signal = true;
  expect_stop(decide(record, convicting(Kind::node_failure, "n1"), {}, budget), "walltime_near");
}

TEST(Policy, NothingIsRelaunchedInAJobThatIsOver) {
  const struct {
    const char* state;
    const char* reason;
  } kCases[] = {{"TIMEOUT", "walltime"},
                {"CANCELLED", "cancelled"},
                {"PREEMPTED", "preempted"},
                {"NODE_FAIL", "job_over"}};
  for (const auto& each : kCases) {
    AttemptRecord record = at();
    record.scheduler.job_state = each.state;
    expect_stop(decide(record, convicting(Kind::node_failure, "n1"), {}, plenty()), each.reason);
  }
}

TEST(Policy, TheSameFailureAtTheSameStepTwiceIsStuckAtStep) {
  for (const Kind kind : {Kind::app_error, Kind::oom, Kind::hang, Kind::unknown}) {
    const History before = {past(of(kind), steps(1, 30))};
    expect_stop(decide(at(steps(21, 30)), of(kind), before, plenty()), "stuck_at_step");
  }
}

TEST(Policy, AnotherFailureAtTheSameStepIsNotStuckAtStep) {
  const History before = {past(of(Kind::app_error), steps(1, 30))};
  EXPECT_EQ(decide(at(steps(21, 30)), of(Kind::hang), before, plenty()).action, Action::probe);
}

TEST(Policy, AConvictedHostAtTheSameStepIsStillSwapped) {
  const History before = {past(convicting(Kind::node_failure, "n9", {0, 1}), steps(1, 30))};
  expect_swap(decide(at(steps(21, 30)), convicting(Kind::node_failure, "n1"), before, plenty()),
              "n1", Provenance::scraped);
}

TEST(Policy, TheSameSeatOnTwoHostsStopsAndMakesTheFirstRetirementDoubtful) {
  const History before = {past(convicting(Kind::node_failure, "n9"), steps(1, 30))};
  const Decision d =
      decide(at(steps(21, 31)), convicting(Kind::node_failure, "n1"), before, plenty());
  expect_stop(d, "same_seat");
  EXPECT_TRUE(d.mark_earlier_doubtful);
  EXPECT_EQ(d.doubtful_host, "n9");
}

TEST(Policy, TheSameSeatFarFromThatStepIsAnotherFault) {
  const History before = {past(convicting(Kind::node_failure, "n9"), steps(1, 30))};
  expect_swap(decide(at(steps(21, 60)), convicting(Kind::node_failure, "n1"), before, plenty()),
              "n1", Provenance::scraped);
}

TEST(Policy, AnotherSeatNearThatStepIsAnotherFault) {
  const History before = {past(convicting(Kind::node_failure, "n9", {0, 1}), steps(1, 30))};
  expect_swap(decide(at(steps(21, 30)), convicting(Kind::node_failure, "n1"), before, plenty()),
              "n1", Provenance::scraped);
}

TEST(Policy, TheSameSeatCrashingOnItsNewHostIsTheProgramToo) {
  const History before = {past(convicting(Kind::node_failure, "n9"), steps(1, 30))};
  Verdict crash = of(Kind::app_error);
  crash.dead_ranks = {5};
  expect_stop(decide(at(steps(21, 30)), crash, before, plenty()), "same_seat");
}

TEST(Policy, NearIsTheDistanceBetweenTwoProgressLines) {
  evidence::Progress every_ten = steps(10, 100);
  every_ten.interval = 10;
  const History before = {past(convicting(Kind::node_failure, "n9"), every_ten)};
  evidence::Progress now = steps(60, 110);
  now.interval = 10;
  expect_stop(decide(at(now), convicting(Kind::node_failure, "n1"), before, plenty()), "same_seat");
}

TEST(Policy, TwoAttemptsThatNeverTrainedAndConvictedNobodyAreNotWorthAGuess) {
  for (const Kind kind : {Kind::hang, Kind::fabric_fault, Kind::unknown}) {
    const History before = {past(of(kind))};
    EXPECT_EQ(decide(at(), of(kind), before, plenty()).action, Action::probe);
    expect_stop(decide_after_probe(at(), of(kind), healthy(), before, plenty()),
                "stuck_pre_training");
    expect_swap(decide_after_probe(at(), of(kind), sick({"n2"}), before, plenty()), "n2",
                Provenance::probed);
  }
}

TEST(Policy, AHostConvictedInBetweenIsNotStuckPreTraining) {
  const History before = {past(convicting(Kind::node_failure, "n9"))};
  EXPECT_EQ(decide(at(), of(Kind::app_error), before, plenty()).action, Action::retry_same);
}

TEST(Policy, RelaunchesWithoutProgressAreBoundedWhateverTheyAreCalled) {
  const History before = {past(of(Kind::port_in_use)), past(of(Kind::hang)),
                          past(of(Kind::filesystem_fault)), past(of(Kind::unknown))};
  expect_stop(decide(at(), of(Kind::launcher_fault), before, plenty()), "stuck");
}

TEST(Policy, NoLoopWithoutProgressOutlastsTheBound) {
  // Whatever comes, in whatever order, with more retries and spares than anyone has.
  for (unsigned seed = 0; seed < 500; ++seed) {
    unsigned state = seed * 2654435761U + 1;
    History history;
    Budget budget = plenty();
    budget.retries_left = 1000;
    budget.spares_left = 1000;
    budget.blind = seed % 2 == 0 ? Blind::always : Blind::last_resort;
    int attempts = 0;
    for (;; ++attempts) {
      ASSERT_LT(attempts, kMaxWithoutProgress);
      state = state * 1664525U + 1013904223U;
      const Verdict verdict = of(static_cast<Kind>((state >> 16U) % 16));
      Decision d = decide(at(), verdict, history, budget);
      if (d.action == Action::probe) {
        d = decide_after_probe(at(), verdict, healthy(), history, budget);
      }
      ASSERT_NE(d.action, Action::probe);
      if (d.action == Action::stop) break;
      history.push_back(remember(at(), verdict, d));
    }
  }
}

TEST(Policy, SpentRetriesStop) {
  Budget budget = plenty();
  budget.retries_left = 0;
  expect_stop(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget), "max_retries");
  expect_stop(decide(at(), of(Kind::success), {}, budget), "success");
}

TEST(Policy, NoRelaunchWhenTheTimeLeftCannotPayForIt) {
  Budget budget = plenty();
  budget.restart_cost_s = 60;
  budget.checkpoint_interval_s = 300;
  budget.time_left_s = 359;
  expect_stop(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget), "walltime_near");
  budget.time_left_s = 361;
  EXPECT_EQ(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget).action, Action::swap);
  budget.time_left_s.reset();  // unknown is not "none"
  EXPECT_EQ(decide(at(), convicting(Kind::node_failure, "n1"), {}, budget).action, Action::swap);
}

// ---- progress

TEST(Progress, IsAStepOrACheckpointBeyondEveryEarlierAttempts) {
  const History before = {past(of(Kind::hang), steps(1, 1000)), past(of(Kind::hang), steps(1, 10))};
  EXPECT_FALSE(made_progress(steps(900, 1000), before));
  EXPECT_TRUE(made_progress(steps(900, 1001), before));
  EXPECT_FALSE(made_progress({}, before));
  EXPECT_FALSE(made_progress({}, {}));
  EXPECT_TRUE(made_progress(steps(0, 0), {}));
  evidence::Progress checkpoint = steps(900, 950);
  checkpoint.last_checkpoint = 940;
  EXPECT_TRUE(made_progress(checkpoint, before));
}

}  // namespace
}  // namespace ezpz::verdict
