// Hosts that somebody could not reach, and ranks that others waited for.
#include "verdict/support.h"

#include <gtest/gtest.h>

#include "verdict/laggards.h"
#include "verdict/testing.h"

namespace ezpz::verdict {
namespace {

using namespace testing;
using Hosts = std::vector<std::string>;

Fact lost_contact(std::string host, std::string pattern = "openmpi.daemon_lost") {
  Fact f = fact(Event::unreachable, Kind::launcher_fault, Role::cause, std::move(pattern),
                "Remote daemon: [[16919,0],3] on node " + host);
  f.host = std::move(host);
  return f;
}

Fact watchdog(int rank, int64_t seq) {
  Fact f = fact(Event::message, Kind::collective_timeout, Role::cause, "nccl.watchdog",
                "Watchdog caught collective operation timeout");
  f.ranks = {rank};
  f.seq = seq;
  return f;
}

TEST(LostContact, AloneItMakesASuspectAndConvictsNobody) {
  const Verdict v = judge_attempt(attempt(1, {lost_contact("nid001306")}));
  EXPECT_EQ(v.kind, Kind::launcher_fault);
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
}

TEST(LostContact, TheTeardownThatALauncherBeginsAfterItIsNobodysWish) {
  const Verdict v =
      judge_attempt(attempt(1, {lost_contact("nid001306"), teardown(Kind::cancelled)}));
  EXPECT_EQ(v.kind, Kind::launcher_fault);
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
}

TEST(LostContact, ALauncherThatGivesUpWithoutSayingWhyIsAtFaultOnlyIfNothingElseIs) {
  const Fact gave_up = teardown(Kind::launcher_fault);
  EXPECT_EQ(judge_attempt(attempt(1, {gave_up})).kind, Kind::launcher_fault);
  EXPECT_EQ(judge_attempt(attempt(1, {crashed("nid001306", {4}, 11), gave_up})).kind,
            Kind::app_error);
}

TEST(LostContact, TwoLinesOfOneSpeakerAreOneWitness) {
  const Verdict v = judge_attempt(attempt(1, {lost_contact("nid001306", "srun.socket"),
                                              lost_contact("nid001306", "srun.task_launch")}));
  EXPECT_TRUE(v.culprits.empty());
}

TEST(LostContact, AnIndependentSpeakerConvicts) {
  const Verdict v = judge_attempt(
      attempt(1, {lost_contact("nid001306", "sge.commlib"), lost_contact("nid001306")}));
  EXPECT_EQ(v.kind, Kind::node_failure);
  EXPECT_EQ(culprits(v), Hosts{"nid001306"});
  EXPECT_EQ(v.used, (std::vector<size_t>{0, 1}));
}

TEST(LostContact, ANodeFailureWithoutANameIsThatOfTheHostOutOfReach) {
  Fact banner = limit(Kind::node_failure, "*** JOB 3 ON nid001304 CANCELLED DUE TO NODE FAILURE");
  const Verdict v = judge_attempt(attempt(143, {lost_contact("nid001306"), banner}));
  EXPECT_EQ(v.kind, Kind::node_failure);
  EXPECT_EQ(culprits(v), Hosts{"nid001306"});
}

TEST(LostContact, ANodeFailureWithoutANameAndTwoHostsOutOfReachConvictsNobody) {
  Fact banner = limit(Kind::node_failure, "*** JOB 3 ON nid001304 CANCELLED DUE TO NODE FAILURE");
  const Verdict v =
      judge_attempt(attempt(143, {lost_contact("nid001306"), lost_contact("nid001304"), banner}));
  EXPECT_EQ(v.kind, Kind::node_failure);
  EXPECT_TRUE(v.culprits.empty());
}

TEST(SeveralWitnesses, OfTwoHostsTheOneNamedByIndependentSpeakersIsConvicted) {
  Fact a = message(Kind::gpu_fault, "uncorrectable ECC error", "nid001304");
  a.pattern = "cuda.ecc";
  Fact b = message(Kind::gpu_fault, "uncorrectable ECC error", "nid001306");
  b.pattern = "cuda.ecc";
  EXPECT_TRUE(culprits(judge_attempt(attempt(1, {a, b}))).empty());
  Fact kernel = message(Kind::gpu_fault, "NVRM: Xid (PCI:0000:41:00): 79", "nid001306");
  kernel.pattern = "nvidia.xid";
  EXPECT_EQ(culprits(judge_attempt(attempt(1, {a, b, kernel}))), Hosts{"nid001306"});
}

TEST(Laggards, TheRankWithTheLowestSequenceNumberIsWaitedFor) {
  const AttemptRecord record =
      attempt(1, {watchdog(2, 120049), watchdog(0, 120049), watchdog(5, 120048)});
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::collective_timeout);
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
  EXPECT_NE(v.summary.find("waited for rank 5 on nid001306"), std::string::npos) << v.summary;
}

TEST(Laggards, RanksAtOneNumberTellNothing) {
  const Verdict v = judge_attempt(attempt(1, {watchdog(2, 51), watchdog(0, 51)}));
  EXPECT_EQ(v.kind, Kind::collective_timeout);
  EXPECT_TRUE(v.suspects.empty());
}

TEST(Laggards, ALowerNumberOfTheLargerPartTellsNothing) {
  const Verdict v = judge_attempt(attempt(1, {watchdog(0, 50), watchdog(1, 50), watchdog(4, 51)}));
  EXPECT_TRUE(v.suspects.empty());
}

TEST(Laggards, RanksThatABarrierMissedAreSuspectAndTheReporterIsNot) {
  Fact barrier = fact(Event::unreachable, Kind::collective_timeout, Role::cause, "torch.barrier",
                      "[Rank 0]: Ranks 4, 5, 6, 7 failed to pass monitoredBarrier");
  barrier.ranks = {4, 5, 6, 7};
  const Verdict v = judge_attempt(attempt(1, {barrier}));
  EXPECT_EQ(v.kind, Kind::collective_timeout);
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
}

TEST(OnlyHost, AGpuErrorConvictsTheOnlyHostOnlyWhenItIsKnownToBeTheOnlyOne) {
  Fact ecc = message(Kind::gpu_fault, "CUDA error: uncorrectable ECC error encountered");
  AttemptRecord record = attempt(1, {ecc}, {"nid1"});
  EXPECT_EQ(culprits(judge_attempt(record)), Hosts{"nid1"});
  record.active_known = false;
  EXPECT_TRUE(culprits(judge_attempt(record)).empty());
}

TEST(Silence, AWatchdogsLastWordIsAHang) {
  Fact last_word = teardown(Kind::hang);
  EXPECT_EQ(judge_attempt(attempt(143, {last_word, terminated("nid001304", {0})})).kind,
            Kind::hang);
}

TEST(Silence, TheExitCodeOfATimeOutIsAHang) {
  AttemptRecord record = attempt(124, {});
  EXPECT_EQ(judge_attempt(record).kind, Kind::hang);
  record.exit = exit_code(123);
  EXPECT_EQ(judge_attempt(record).kind, Kind::unknown);
}

}  // namespace
}  // namespace ezpz::verdict
