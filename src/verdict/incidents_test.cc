// Public failures of launchers like this one, as far as a verdict or the policy could have got them
// right. The numbers are those of docs and issues that cite them.
#include <gtest/gtest.h>

#include "verdict/policy.h"
#include "verdict/testing.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {
namespace {

using namespace testing;

Budget plenty() {
  Budget budget;
  budget.retries_left = 10;
  budget.spares_left = 3;
  return budget;
}

TEST(Incident02, Rc143OfAKilledNodeIsNotWalltime) {
  const AttemptRecord record =
      attempt(143, {killed("nid001306", {4, 5, 6, 7}), teardown(), cancel_banner(),
                    terminated("nid001304", {0, 1, 2, 3})});
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::node_failure);
  const Decision d = decide(record, v, {}, plenty());
  EXPECT_EQ(d.action, Action::swap);
  ASSERT_EQ(d.swap_out.size(), 1U);
  EXPECT_EQ(d.swap_out[0].host, "nid001306");
}

TEST(Incident03, Rc143WithHoursLeftIsNotWalltimeAndTheErrorFarAboveIsFound) {
  AttemptRecord record =
      attempt(143, {message(Kind::app_error, "[rank5141]: MemoryError: std::bad_alloc"),
                    terminated("nid001304", {0, 1, 2, 3}), terminated("nid001306", {4, 5, 6, 7})});
  record.scheduler.end_time_s = record.ended_s + 11 * 3600 + 55 * 60;
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::app_error);
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_NE(v.summary.find("std::bad_alloc"), std::string::npos) << v.summary;
}

TEST(Incident03, Rc143AloneIsNeverWalltime) {
  for (const int rc : {143, 137}) {
    AttemptRecord record = attempt(rc, {});
    EXPECT_EQ(judge_attempt(record).kind, Kind::unknown);
    record.scheduler = {};  // nobody could be asked
    EXPECT_EQ(judge_attempt(record).kind, Kind::unknown);
  }
}

TEST(Incident06, ABlindSwapDoesNotTakeTheFirstHostByHabitAndNotTheSameSeatTwice) {
  AttemptRecord record = attempt(137, {our_signal(Kind::hang)}, {"n0", "n1", "n2", "n3"});
  record.ending = Ending::watchdog;
  record.progress = steps(5, 8);
  const Verdict v = judge_attempt(record);
  PastAttempt before;
  before.verdict.kind = Kind::hang;
  before.progress = steps(1, 10);
  ProbeOutcome healthy;
  healthy.ran = true;
  Decision d = decide_after_probe(record, v, healthy, {before}, plenty());
  ASSERT_EQ(d.action, Action::swap);
  EXPECT_EQ(d.swap_out[0].host, "n1");
  EXPECT_EQ(d.swap_out[0].provenance, Provenance::blind);

  // Later, after progress, the next guess is another seat.
  PastAttempt guessed = before;
  guessed.swapped_out = d.swap_out;
  guessed.progress = steps(5, 20);
  PastAttempt moved = before;
  moved.progress = steps(20, 30);
  record.progress = steps(25, 27);
  d = decide_after_probe(record, v, healthy, {before, guessed, moved}, plenty());
  ASSERT_EQ(d.action, Action::swap);
  EXPECT_EQ(d.swap_out[0].host, "n2");
}

TEST(Incident07, EvidenceThatNamesOnlyARetiredHostIsFlaggedAndNobodyIsGuessed) {
  AttemptRecord record = attempt(1, {node_lost("nid001308"), killed("nid001308", {4})});
  record.retired_earlier = {"nid001308"};
  record.progress = steps(5, 6);
  const Verdict v = judge_attempt(record);
  EXPECT_TRUE(v.retired_host_named);
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_EQ(v.kind, Kind::unknown);
  EXPECT_EQ(reason_against(v, 0), "nid001308 was retired before this attempt: not convicted again");

  PastAttempt before;
  before.verdict.kind = Kind::unknown;
  before.progress = steps(1, 10);
  ProbeOutcome healthy;
  healthy.ran = true;
  for (const Blind blind : {Blind::last_resort, Blind::always}) {
    Budget budget = plenty();
    budget.blind = blind;
    EXPECT_EQ(decide(record, v, {before}, budget).action, Action::probe);
    const Decision d = decide_after_probe(record, v, healthy, {before}, budget);
    EXPECT_EQ(d.action, Action::stop);
    EXPECT_EQ(d.stop_reason, "retired_host_named");
  }
}

TEST(Incident08, AFullDiskSpendsNoSpareAndTheUserIsToldWhereToLook) {
  AttemptRecord record =
      attempt(1, {message(Kind::filesystem_fault, "OSError: [Errno 28] No space left on device"),
                  exited("nid001304", {0}, 1)});
  record.progress = steps(1, 100);
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::filesystem_fault);
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_NE(v.remedy.find("lfs df"), std::string::npos);
  EXPECT_NE(v.remedy.find("striping"), std::string::npos);
  const Decision d = decide(record, v, {}, plenty());
  EXPECT_EQ(d.action, Action::retry_same);
  EXPECT_GT(d.backoff_s, 0);
}

TEST(Incident09, TheSickChildOfALaunchTreeIsTheCulpritAndNotTheParentThatReports) {
  Fact parent = fact(Event::launcher, Kind::launcher_fault, Role::context, "pals.launch_failed",
                     "launch failed on x1: Couldn't forward RPC launch() to child x2");
  parent.host = "x1";
  Fact child = node_lost("x2");
  child.pattern = "pals.launch_failed_child";
  const Verdict v = judge_attempt(attempt(1, {parent, child}, {"x1", "x2", "x3"}));
  EXPECT_EQ(v.kind, Kind::node_failure);
  EXPECT_EQ(culprits(v), std::vector<std::string>{"x2"});
}

TEST(Incident16, NoBackoffWhenAHostWasConvicted) {
  const AttemptRecord record = attempt(0, {node_lost("nid001306")});
  const Decision d = decide(record, judge_attempt(record), {}, plenty());
  EXPECT_EQ(d.action, Action::swap);
  EXPECT_EQ(d.backoff_s, 0);
}

TEST(Incident19, MpichWithoutItsGpuLibraryIsTheEnvironmentsFaultAndNoNodes) {
  Fact gtl = message(Kind::env_fault,
                     "MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but GTL library is not "
                     "linked");
  const AttemptRecord record = attempt(139, {gtl, crashed("nid001304", {0, 1, 2, 3}, 11),
                                             crashed("nid001306", {4, 5, 6, 7}, 11), teardown()});
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::env_fault);
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_TRUE(v.suspects.empty());
  EXPECT_NE(v.remedy.find("MPICH_GPU_SUPPORT_ENABLED=0"), std::string::npos);
  const Decision d = decide(record, v, {}, plenty());
  EXPECT_EQ(d.stop_reason, "env_fault");
  EXPECT_NE(d.why.find("MPICH_GPU_SUPPORT_ENABLED=0"), std::string::npos);
}

TEST(Incident20, AnUnsupportedCompileIsTheEnvironmentsFaultWithARemedy) {
  const AttemptRecord record =
      attempt(1, {message(Kind::env_fault, "torch._dynamo.exc.Unsupported: ... skipped")});
  EXPECT_NE(judge_attempt(record).remedy.find("--compile"), std::string::npos);
}

Fact uses_network(const std::string& name, const std::string& host) {
  Fact f = fact(Event::network, Kind::unknown, Role::context, "nccl.network",
                host + ":1:2 [0] NCCL INFO Using network " + name);
  f.reason = name;
  f.label = host;
  return f;
}

const NetworkWish kLibfabric{"AWS Libfabric", true, "module load nccl/2.24.3", "8.3 times slower"};

TEST(Incident17, ARequiredNetworkThatIsNotUsedIsTheEnvironmentsFaultWithTheMachinesRemedy) {
  AttemptRecord record = attempt(143, {uses_network("Socket", "nid001304"),
                                       uses_network("Socket", "nid001306"), our_signal()});
  record.ending = Ending::guard;
  record.network = kLibfabric;
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::env_fault);
  EXPECT_EQ(v.remedy, "module load nccl/2.24.3");
  EXPECT_TRUE(v.culprits.empty());
  EXPECT_TRUE(v.suspects.empty());
  EXPECT_NE(v.summary.find("Socket instead of AWS Libfabric"), std::string::npos) << v.summary;
  const Decision d = decide(record, v, {}, plenty());
  EXPECT_EQ(d.action, Action::stop);
  EXPECT_EQ(d.stop_reason, "env_fault");
  EXPECT_NE(d.why.find("module load"), std::string::npos) << d.why;
}

TEST(Incident17, OneHostAloneWithoutTheProviderIsProbedAndTheOthersAreNot) {
  AttemptRecord record =
      attempt(143,
              {uses_network("AWS Libfabric", "nid001304"), uses_network("Socket", "nid001306"),
               uses_network("Libfabric", "nid001308"), our_signal()},
              {"nid001304", "nid001306", "nid001308"});
  record.ending = Ending::guard;
  record.network = kLibfabric;
  const Verdict v = judge_attempt(record);
  EXPECT_EQ(v.kind, Kind::env_fault);
  EXPECT_EQ(v.suspects, std::vector<std::string>{"nid001306"});
  EXPECT_EQ(decide(record, v, {}, plenty()).action, Action::probe);
  ProbeOutcome sick;
  sick.ran = true;
  sick.failed = {"nid001306"};
  EXPECT_EQ(decide_after_probe(record, v, sick, {}, plenty()).action, Action::swap);
}

TEST(Incident17, ASuccessOnSocketsStaysASuccess) {
  AttemptRecord record = attempt(0, {uses_network("Socket", "nid001304")});
  record.network = kLibfabric;
  record.progress = steps(1, 10);
  EXPECT_EQ(judge_attempt(record).kind, Kind::success);
}

TEST(Incident28, AProbeThatTimesOutIsUnknownNotSick) {
  AttemptRecord record = attempt(1, {});
  record.progress = steps(1, 10);
  const Verdict v = judge_attempt(record);
  ProbeOutcome outcome;
  outcome.ran = true;
  outcome.unknown = {"nid001306"};
  const Decision d = decide_after_probe(record, v, outcome, {}, plenty());
  EXPECT_EQ(d.action, Action::retry_same);
}

}  // namespace
}  // namespace ezpz::verdict
