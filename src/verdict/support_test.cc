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

Fact lost_of_several(std::string host, int64_t step) {
  Fact f = lost_contact(std::move(host), "openmpi.daemon_lost_of_several");
  f.event = Event::lost_of_several;
  f.step = step;
  return f;
}

// Shared rows 055 and 057 stay as they are: a daemon lost before any step, or the only one, may be
// behind a bad route; that of a job in its 11300th step had been reached until then.
TEST(LostContact, OneOfSeveralHostsLostAfterTrainingStepsIsConvicted) {
  const Verdict v = judge_attempt(attempt(1, {lost_of_several("nid001306", 11300)}));
  EXPECT_EQ(v.kind, Kind::node_failure);
  EXPECT_EQ(culprits(v), Hosts{"nid001306"});
}

TEST(LostContact, OneOfSeveralHostsLostBeforeAnyStepIsASuspect) {
  const Verdict v = judge_attempt(attempt(1, {lost_of_several("nid001306", -1)}));
  EXPECT_EQ(culprits(v), Hosts{});
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
}

TEST(LostContact, TwoHostsLostOfSeveralConvictNobody) {
  const Verdict v = judge_attempt(
      attempt(1, {lost_of_several("nid001306", 40), lost_of_several("nid001304", 40)}));
  EXPECT_EQ(culprits(v), Hosts{});
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

TEST(BareLog, ANameThatMerelyStandsInItIsNoOtherHost) {
  AttemptRecord record = attempt(137, {killed("nid1", {2})}, {"nid1", "elsewhere"});
  record.active_known = false;
  EXPECT_TRUE(culprits(judge_attempt(record)).empty());
  record.facts.push_back(terminated("elsewhere", {7}));
  EXPECT_EQ(culprits(judge_attempt(record)), Hosts{"nid1"});
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

TEST(LostContact, AProgramsComplaintIsNoSecondWitness) {
  Fact complaint = message(Kind::app_error, "RuntimeError: bad batch", "nid001306");
  complaint.pattern = "python.exception";
  EXPECT_TRUE(culprits(judge_attempt(attempt(1, {lost_contact("nid001306"), complaint}))).empty());
}

TEST(Survived, ATroubleOfTheStartThatTrainingWentOnAfterIsNotTheCause) {
  Fact plugin = message(Kind::env_fault, "aws-ofi-nccl initialization failed");
  AttemptRecord record = attempt(143, {plugin, killed("nid001306", {4, 5, 6, 7}), teardown(),
                                       terminated("nid001304", {0, 1, 2, 3})});
  EXPECT_EQ(judge_attempt(record).kind, Kind::env_fault);
  record.progress = steps(1, 200);
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::node_failure);
  EXPECT_EQ(culprits(v), Hosts{"nid001306"});
}

TEST(Survived, ATroubleInMidRunWithAStepOrTwoAfterItStillIs) {
  Fact missing = message(Kind::env_fault, "ModuleNotFoundError: No module named 'x'");
  missing.step = 198;
  AttemptRecord record = attempt(1, {missing, exited("nid001306", {4}, 1)});
  record.progress = steps(1, 200);
  EXPECT_EQ(judge_attempt(record).kind, Kind::env_fault);
}

TEST(Torchrun, ItsRanksAreNotTheLaunchers) {
  Fact ecc = message(Kind::gpu_fault, "CUDA error: uncorrectable ECC error encountered");
  ecc.ranks = {5};
  EXPECT_EQ(culprits(judge_attempt(attempt(1, {ecc}))), Hosts{"nid001306"});
  Fact agent = fact(Event::message, Kind::app_error, Role::cascade, "torchrun.child_failed",
                    "ChildFailedError");
  EXPECT_TRUE(culprits(judge_attempt(attempt(1, {ecc, agent}))).empty());
  Fact banner = fact(Event::placement, Kind::unknown, Role::context, "topology.banner", "rank 5");
  banner.host = "nid001304";
  banner.ranks = {5};
  EXPECT_EQ(culprits(judge_attempt(attempt(1, {banner, ecc, agent}))), Hosts{"nid001304"});
}

TEST(Placement, WhereARankDiedItRan) {
  Fact ecc = message(Kind::gpu_fault, "CUDA error: uncorrectable ECC error encountered");
  ecc.ranks = {6};
  AttemptRecord record = attempt(1, {ecc, exited("nid001306", {6}, 1)});
  record.host_of_rank.clear();
  EXPECT_EQ(culprits(judge_attempt(record)), Hosts{"nid001306"});
}

TEST(SharedTrouble, AFullFileSystemIsSuspiciousOnlyWhereItIsTheNodesOwn) {
  EXPECT_TRUE(
      judge_attempt(attempt(1, {message(Kind::filesystem_fault,
                                        "No space left on device: '/scratch/run'", "nid001306")}))
          .suspects.empty());
  EXPECT_EQ(judge_attempt(attempt(1, {message(Kind::filesystem_fault,
                                              "No space left on device: '/tmp/x'", "nid001306")}))
                .suspects,
            Hosts{"nid001306"});
}

TEST(Echo, OnlyEchoesAreTheBestGuess) {
  Fact echo = fact(Event::message, Kind::fabric_fault, Role::cascade, "nccl.remote",
                   "remote process exited or there was a network error");
  const Verdict v = judge_attempt(attempt(1, {echo}));
  EXPECT_EQ(v.kind, Kind::fabric_fault);
  EXPECT_LT(v.confidence, 0.5);
}

TEST(ReturnCode, ACommandThatCouldNotBeRunIsTheEnvironments) {
  EXPECT_EQ(judge_attempt(attempt(127, {})).kind, Kind::env_fault);
  EXPECT_EQ(judge_attempt(attempt(126, {})).kind, Kind::env_fault);
  EXPECT_EQ(judge_attempt(attempt(125, {})).kind, Kind::unknown);
}

TEST(OnlyHost, AnNvlinkErrorInALogOfChannelsInsideOneHostIsThatHosts) {
  Fact ecc = message(Kind::gpu_fault, "CUDA error: uncorrectable NVLink error detected");
  Fact inside =
      fact(Event::within_host, Kind::unknown, Role::context, "nccl.inside", "via P2P/IPC");
  AttemptRecord record = attempt(1, {inside, ecc}, {"nid1"});
  record.active_known = false;
  EXPECT_EQ(culprits(judge_attempt(record)), Hosts{"nid1"});
  record.facts[1].text = "CUDA error: uncorrectable ECC error encountered";
  EXPECT_TRUE(culprits(judge_attempt(record)).empty());
  record.facts[1].text = ecc.text;
  record.facts.push_back(
      fact(Event::between_hosts, Kind::unknown, Role::context, "nccl.between", "via NET/IB"));
  EXPECT_TRUE(culprits(judge_attempt(record)).empty());
}

TEST(LostContact, OneWhoRefusesAConnectionIsAlive) {
  Fact refused = lost_contact("nid001306", "ssh.connect");
  refused.reason = "Connection refused";
  const Verdict v = judge_attempt(attempt(1, {refused, lost_contact("nid001306")}));
  EXPECT_EQ(culprits(v), Hosts{});
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
}

TEST(LostContact, ASingleStepDoesNotShowThatTheJobRan) {
  AttemptRecord record = attempt(1, {lost_of_several("nid001306", 40)});
  record.progress = steps(40, 40);
  EXPECT_EQ(culprits(judge_attempt(record)), Hosts{});
  record.progress = steps(39, 40);
  EXPECT_EQ(culprits(judge_attempt(record)), Hosts{"nid001306"});
}

}  // namespace
}  // namespace ezpz::verdict
