// A log of several runs: which of them is judged.
#include "verdict/runs.h"

#include <gtest/gtest.h>

#include "verdict/testing.h"

namespace ezpz::verdict {
namespace {

using namespace testing;
using Hosts = std::vector<std::string>;

AttemptRecord two_runs(int code, std::vector<Fact> facts, int64_t earlier_end) {
  AttemptRecord record = attempt(code, std::move(facts));
  record.progress = steps(1000, 1340);
  record.progress.earlier_runs_end = earlier_end;
  record.scheduler = {};
  record.ended_s = 0;
  return record;
}

TEST(Runs, ANodeThatAnEarlierRunLostIsHistoryOnceAnotherTrainsOn) {
  const Verdict v = judge_attempt(two_runs(0, {node_lost("nid001306")}, 1));
  EXPECT_EQ(v.kind, Kind::success);
  EXPECT_EQ(culprits(v), Hosts{});
  EXPECT_NE(v.summary.find("history"), std::string::npos) << v.summary;
}

TEST(Runs, OfTwoLossesTheLastRunsHostIsConvicted) {
  const Verdict v = judge_attempt(
      two_runs(1, {node_lost("nid001306"), cancel_banner(), node_lost("nid001304")}, 2));
  EXPECT_EQ(v.kind, Kind::node_failure);
  EXPECT_EQ(culprits(v), Hosts{"nid001304"});
}

TEST(Runs, WithoutAnEarlierRunsEndTheLossCounts) {
  AttemptRecord record = attempt(1, {node_lost("nid001306")});
  record.progress = steps(1000, 1340);
  EXPECT_EQ(culprits(judge_attempt(record)), Hosts{"nid001306"});
}

TEST(Runs, ADeathThatStepsFollowedIsSurvivedOnlyIfTheEndWasClean) {
  for (const int code : {0, 1}) {
    AttemptRecord record = two_runs(code, {killed("nid001306", {5})}, 0);
    record.progress.earlier_runs_end.reset();
    record.progress.survived_line = 1;
    EXPECT_EQ(judge_attempt(record).kind, code == 0 ? Kind::success : Kind::node_failure);
  }
}

TEST(Runs, ARequeueThatIsTheLastWordIsHowTheJobEnded) {
  Fact requeue = limit(Kind::preempted, "CANCELLED AT ... DUE TO JOB REQUEUE");
  requeue.reason = "JOB REQUEUE";
  EXPECT_EQ(earlier_runs_end(two_runs(0, {killed("nid001306", {5}), requeue}, 0)), 0);
  EXPECT_EQ(earlier_runs_end(two_runs(0, {requeue, message(Kind::unknown, "x")}, 0)), 1);
}

TEST(Runs, TheLastRunKeepsTheRanksPlacesUnlessItPlacedThemAnew) {
  Fact place =
      fact(Event::placement, Kind::unknown, Role::context, "srun.placement", "0: nid001304");
  place.host = "nid001304";
  place.ranks = {0};
  AttemptRecord record = two_runs(1, {place, node_lost("nid001306")}, 2);
  EXPECT_EQ(last_run_of(record, 2).facts[0].event, Event::placement);
  record.facts.push_back(place);
  record.facts.back().line = 3;
  EXPECT_EQ(last_run_of(record, 2).facts[0].event, Event::message);
}

}  // namespace
}  // namespace ezpz::verdict
