// What real launchers printed at each kind of end, and what must be concluded from it.
#include <gtest/gtest.h>

#include "verdict/testing.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {
namespace {

using namespace testing;
using Hosts = std::vector<std::string>;

void expect_nobody(const Verdict& verdict, Kind kind) {
  EXPECT_EQ(verdict.kind, kind) << to_string(verdict.kind) << ": " << verdict.summary;
  EXPECT_TRUE(verdict.culprits.empty()) << verdict.summary;
  EXPECT_FALSE(verdict.summary.empty());
}

void expect_host(const Verdict& verdict, Kind kind, const std::string& host, Provenance p) {
  EXPECT_EQ(verdict.kind, kind) << to_string(verdict.kind) << ": " << verdict.summary;
  ASSERT_EQ(culprits(verdict), Hosts{host}) << verdict.summary;
  EXPECT_EQ(verdict.culprits[0].provenance, p);
}

// ---- Slurm, row by row

TEST(AttributionSlurm, OneRankKilledWithoutKillOnBadExitConvictsItsHost) {
  const Verdict v = judge_attempt(attempt(137, {killed("nid001306", {5}), teardown()}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
  EXPECT_EQ(v.culprits[0].ranks, std::vector<int>{5});
  EXPECT_EQ(v.dead_ranks, std::vector<int>{5});
  EXPECT_EQ(v.culprits[0].fact, 0U);
}

TEST(AttributionSlurm, AllRanksOfOneHostKilledConvictThatHostAndNotTheTerminatedOne) {
  const Verdict v =
      judge_attempt(attempt(143, {killed("nid001306", {4, 5, 6, 7}), teardown(), cancel_banner(),
                                  terminated("nid001304", {0, 1, 2, 3}), teardown()}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
  EXPECT_EQ(v.culprits[0].ranks, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(v.summary,
            "node failure: nid001306 lost ranks 4-7 (signal 9) before anything else ended");
  EXPECT_EQ(reason_against(v, 3), "after the teardown began (line 2)");
}

TEST(AttributionSlurm, TheSameWithoutKillOnBadExitConvictsTheSameHost) {
  const Verdict v = judge_attempt(attempt(137, {killed("nid001306", {4, 5, 6, 7}), teardown()}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(AttributionSlurm, RanksOfTheKilledHostMayBeReportedOnSeveralLinesBothSidesOfTheTeardown) {
  const Verdict v = judge_attempt(
      attempt(143, {killed("nid001306", {5}), teardown(), cancel_banner(),
                    killed("nid001306", {4, 6, 7}), terminated("nid001304", {0, 1, 2, 3})}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(AttributionSlurm, OneRankExiting1IsTheProgramsErrorThoughRcIs143) {
  const Verdict v = judge_attempt(
      attempt(143, {exited("nid001306", {5}, 1), cancel_banner(),
                    terminated("nid001304", {0, 1, 2, 3}), terminated("nid001306", {4, 6, 7})}));
  expect_nobody(v, Kind::app_error);
  EXPECT_EQ(v.dead_ranks, std::vector<int>{5});
}

TEST(AttributionSlurm, ASegmentationFaultIsTheProgramsError) {
  const Verdict v = judge_attempt(
      attempt(143, {crashed("nid001306", {6}, 11), teardown(), cancel_banner(),
                    terminated("nid001304", {0, 1, 2, 3}), terminated("nid001306", {4, 5, 7})}));
  expect_nobody(v, Kind::app_error);
}

TEST(AttributionSlurm, ATimeLimitBlamesNobody) {
  const Verdict v = judge_attempt(
      attempt(143, {limit(Kind::walltime,
                          "*** STEP 4.0 ON nid001304 CANCELLED AT ... DUE TO TIME "
                          "LIMIT ***"),
                    limit(Kind::walltime, "*** JOB 4 ..."), teardown(),
                    terminated("nid001304", {0, 1, 2, 3}), terminated("nid001306", {4, 5, 6, 7})}));
  expect_nobody(v, Kind::walltime);
}

TEST(AttributionSlurm, ATimeLimitWithTasksThatIgnoreTermBlamesNobodyThoughAllAreKilled) {
  const Verdict v = judge_attempt(
      attempt(137, {limit(Kind::walltime, "DUE TO TIME LIMIT"), teardown(),
                    killed("nid001304", {0, 1, 2, 3}), killed("nid001306", {4, 5, 6, 7})}));
  expect_nobody(v, Kind::walltime);
}

TEST(AttributionSlurm, ACancelledStepBlamesNobodyThoughEveryNodeIsKilled) {
  for (const int rc : {124, 143, 137, 0}) {
    const Verdict v =
        judge_attempt(attempt(rc, {teardown(), cancel_banner(), killed("nid001304", {0, 1, 2, 3}),
                                   killed("nid001306", {4, 5, 6, 7})}));
    expect_nobody(v, Kind::cancelled);
  }
}

TEST(AttributionSlurm, ACancelledStepWhoseSurvivorsDieOnOneHostOnlyBlamesNobody) {
  const Verdict v =
      judge_attempt(attempt(143, {cancel_banner(), teardown(), killed("nid001306", {4, 5, 6, 7})}));
  expect_nobody(v, Kind::cancelled);
}

TEST(AttributionSlurm, ALostNodeIsNeverSuccessThoughRcIs0) {
  const Verdict v = judge_attempt(attempt(0, {node_lost("nid001306")}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
  EXPECT_EQ(v.dead_ranks, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(v.summary, "node failure: nid001306 was reported lost by the launcher");
}

TEST(AttributionSlurm, AfterACutCableTheKilledSurvivorIsInnocent) {
  const Verdict v =
      judge_attempt(attempt(137, {node_lost("nid000002"), killed("nid000001", {0, 1}), teardown()},
                            {"nid000001", "nid000002"}));
  expect_host(v, Kind::node_failure, "nid000002", Provenance::scraped);
  EXPECT_FALSE(reason_against(v, 1).empty());
}

TEST(AttributionSlurm, AfterACutCableTheSurvivorIsInnocentEvenWhenItIsPrintedFirst) {
  const Verdict v =
      judge_attempt(attempt(137, {killed("nid000001", {0, 1}), node_lost("nid000002"), teardown()},
                            {"nid000001", "nid000002"}));
  expect_host(v, Kind::node_failure, "nid000002", Provenance::scraped);
}

TEST(AttributionSlurm, AMissingProgramIsTheEnvironmentsFault) {
  std::vector<Fact> facts;
  for (const char* host : {"nid001304", "nid001306"}) {
    Fact f =
        message(Kind::env_fault, "error: execve(): /no/such/prog: No such file or directory", host);
    f.pattern = "slurmstepd.execve";
    facts.push_back(f);
  }
  facts.push_back(exited("nid001304", {0, 1, 2, 3}, 2));
  facts.push_back(exited("nid001306", {4, 5, 6, 7}, 2));
  const Verdict v = judge_attempt(attempt(2, facts));
  expect_nobody(v, Kind::env_fault);
  EXPECT_TRUE(v.suspects.empty());
  EXPECT_NE(v.remedy.find("program exists"), std::string::npos) << v.remedy;
}

TEST(AttributionSlurm, AProgramMissingOnOneHostAloneMakesItSuspectNotConvicted) {
  const Verdict v = judge_attempt(
      attempt(143, {message(Kind::env_fault, "execve(): /x: No such file", "nid001306"),
                    exited("nid001306", {4, 5, 6, 7}, 2), cancel_banner(),
                    terminated("nid001304", {0, 1, 2, 3})}));
  expect_nobody(v, Kind::env_fault);
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
}

TEST(AttributionSlurm, AStepThatCannotBeCreatedIsTheLaunchersFault) {
  for (const Kind kind : {Kind::launcher_fault, Kind::env_fault}) {
    Fact f = fact(Event::launcher, kind, Role::cause, "srun.unable_to_create_step",
                  "srun: error: Unable to create step for job 2: Requested node configuration ...");
    expect_nobody(judge_attempt(attempt(1, {f})), kind);
  }
}

// ---- nodes and the scheduler

TEST(Attribution, SeveralNodesMayBeLostAtOnce) {
  const Verdict v = judge_attempt(
      attempt(143, {node_lost("nid1"), node_lost("nid3"), teardown()}, {"nid1", "nid2", "nid3"}));
  EXPECT_EQ(culprits(v), (Hosts{"nid1", "nid3"}));
  EXPECT_EQ(v.summary, "node failure: nid1 and nid3 were reported lost by the launcher");
}

TEST(Attribution, ANodeTheSchedulerCallsDownIsLostWithoutAWordInTheOutput) {
  for (const char* state : {"DOWN*", "DOWN", "FAIL", "DOWN+NOT_RESPONDING", "down,offline"}) {
    AttemptRecord record = attempt(0, {});
    record.scheduler.node_states = {{"nid001304", "ALLOCATED"}, {"nid001306", state}};
    const Verdict v = judge_attempt(record);
    expect_host(v, Kind::node_failure, "nid001306", Provenance::scheduler);
    EXPECT_EQ(v.culprits[0].fact, kNoFact);
    EXPECT_EQ(v.culprits[0].ranks, (std::vector<int>{4, 5, 6, 7}));
    EXPECT_NE(v.summary.find(state), std::string::npos);
  }
}

TEST(Attribution, ASilentNodeIsLostOnlyWhenSomethingWentWrong) {
  AttemptRecord record = attempt(0, {});
  record.scheduler.node_states = {{"nid001306", "ALLOCATED+NOT_RESPONDING"}};
  expect_nobody(judge_attempt(record), Kind::success);
  record.exit = exit_code(143);
  expect_host(judge_attempt(record), Kind::node_failure, "nid001306", Provenance::scheduler);
}

TEST(Attribution, ADrainingActiveHostIsContextOnly) {
  AttemptRecord record = attempt(0, {});
  record.scheduler.node_states = {{"nid001304", "DRAINING"}, {"nid001306", "MIXED+DRAIN"}};
  expect_nobody(judge_attempt(record), Kind::success);
}

TEST(Attribution, TheSchedulersWordOutranksTheKilledSurvivor) {
  AttemptRecord record = attempt(137, {killed("nid001304", {0, 1, 2, 3}), teardown()});
  record.scheduler.node_states = {{"nid001306", "DOWN*"}};
  expect_host(judge_attempt(record), Kind::node_failure, "nid001306", Provenance::scheduler);
}

TEST(Attribution, ANodeNamedByTextAndSchedulerIsSurer) {
  AttemptRecord record = attempt(0, {node_lost("nid001306")});
  const double by_text = judge_attempt(record).confidence;
  record.scheduler.node_states = {{"nid001306", "DOWN*"}};
  const Verdict v = judge_attempt(record);
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
  EXPECT_GT(v.confidence, by_text);
}

TEST(Attribution, AnAgentsReportConvictsAsAnAgents) {
  Fact report = node_lost("nid001306");
  report.source = Source::agent;
  expect_host(judge_attempt(attempt(1, {report})), Kind::node_failure, "nid001306",
              Provenance::agent);
}

TEST(Attribution, JobStatesThatSayHowItEndedOutrankText) {
  const struct {
    const char* state;
    Kind kind;
  } kCases[] = {{"TIMEOUT", Kind::walltime},       {"DEADLINE", Kind::walltime},
                {"CANCELLED", Kind::cancelled},    {"CANCELLED by 1000", Kind::cancelled},
                {"CANCELLED+", Kind::cancelled},   {"PREEMPTED", Kind::preempted},
                {"NODE_FAIL", Kind::node_failure}, {"OUT_OF_MEMORY", Kind::oom}};
  for (const auto& each : kCases) {
    AttemptRecord record =
        attempt(143, {exited("nid001306", {5}, 1), terminated("nid001304", {0, 1})});
    record.scheduler.job_state = each.state;
    expect_nobody(judge_attempt(record), each.kind);
  }
}

TEST(Attribution, AnUncleanEndAtTheJobsEndTimeIsWalltime) {
  AttemptRecord record = attempt(143, {terminated("nid001304", {0}), terminated("nid001306", {4})});
  record.ended_s = *record.scheduler.end_time_s - 2;
  expect_nobody(judge_attempt(record), Kind::walltime);
  record.ended_s = *record.scheduler.end_time_s + 40;  // the limit is enforced late
  expect_nobody(judge_attempt(record), Kind::walltime);
}

TEST(Attribution, ACleanEndJustBeforeTheLimitIsSuccess) {
  AttemptRecord record = attempt(0, {});
  record.ended_s = *record.scheduler.end_time_s - 2;
  expect_nobody(judge_attempt(record), Kind::success);
}

TEST(Attribution, APreemptionBannerIsNeitherFaultNorCancel) {
  expect_nobody(judge_attempt(attempt(1, {limit(Kind::preempted, "DUE TO PREEMPTION"),
                                          exited("nid001306", {4, 5}, 1)})),
                Kind::preempted);
}

TEST(Attribution, ABannerThatSaysNodeFailureWithoutANameConvictsNobody) {
  Fact banner = limit(Kind::node_failure, "*** STEP ON nid001304 CANCELLED DUE TO NODE FAILURE");
  banner.host = "nid001304";  // the step's first node: never evidence
  expect_nobody(judge_attempt(attempt(143, {banner})), Kind::node_failure);
  const Verdict v = judge_attempt(attempt(143, {banner, node_lost("nid001306")}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
}

// ---- who asked whom to stop

TEST(Attribution, AUserStopIsCancelledAndNeverSuccess) {
  for (const int rc : {0, 1, 143}) {
    AttemptRecord record =
        attempt(rc, {our_signal(), cancel_banner(), killed("nid001306", {4, 5, 6, 7})});
    record.ending = Ending::user_stop;
    expect_nobody(judge_attempt(record), Kind::cancelled);
  }
}

TEST(Attribution, AUserStopWithoutAnyMarkIsCancelledTooForTheDeathsMayBeOurs) {
  AttemptRecord record = attempt(137, {killed("nid001306", {4, 5, 6, 7})});
  record.ending = Ending::user_stop;
  expect_nobody(judge_attempt(record), Kind::cancelled);
}

TEST(Attribution, ATimeLimitThatSignalsEzpzTooIsWalltimeAndNotAUserStop) {
  AttemptRecord record =
      attempt(143, {our_signal(), limit(Kind::walltime, "DUE TO TIME LIMIT"), teardown(),
                    terminated("nid001304", {0, 1, 2, 3}), terminated("nid001306", {4, 5, 6, 7})});
  record.ending = Ending::user_stop;
  expect_nobody(judge_attempt(record), Kind::walltime);
  record.facts = {our_signal(), cancel_banner()};
  record.ended_s = *record.scheduler.end_time_s;
  expect_nobody(judge_attempt(record), Kind::walltime);
}

TEST(Attribution, AHostThatDiedBeforeTheUserStopIsStillTheCause) {
  AttemptRecord record = attempt(143, {killed("nid001306", {4, 5, 6, 7}), our_signal()});
  record.ending = Ending::user_stop;
  expect_host(judge_attempt(record), Kind::node_failure, "nid001306", Provenance::scraped);
  record.facts = {node_lost("nid001306"), our_signal()};
  expect_host(judge_attempt(record), Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(Attribution, ACancelBannerAfterADeathIsOnlyTheLaunchersOwn) {
  expect_nobody(judge_attempt(attempt(143, {exited("nid001306", {5}, 1), cancel_banner()})),
                Kind::app_error);
}

TEST(Attribution, AWatchdogsWordBeforeTheCancelBannerMakesItAHang) {
  const AttemptRecord record =
      attempt(124, {teardown(Kind::hang), cancel_banner(), terminated("nid001304", {0, 1, 2, 3}),
                    killed("nid001306", {4, 5, 6, 7})});
  expect_nobody(judge_attempt(record), Kind::hang);
}

TEST(Attribution, AnErrorTextLongBeforeACancelDoesNotUndoIt) {
  expect_nobody(
      judge_attempt(attempt(143, {message(Kind::filesystem_fault, "Stale file handle"),
                                  cancel_banner(), terminated("nid001304", {0, 1, 2, 3})})),
      Kind::cancelled);
}

TEST(Attribution, DeathsByTermAloneWithNoClockAreAnEndFromOutside) {
  AttemptRecord record = attempt(143, {terminated("nid001304", {0}), crashed("nid001306", {4}, 11),
                                       terminated("nid001306", {5})});
  record.scheduler = {};
  record.ended_s = 0;
  const Verdict v = judge_attempt(record);
  expect_nobody(v, Kind::cancelled);
  EXPECT_LT(v.confidence, 0.5);
}

TEST(Attribution, DeathsByTermAloneWithTimeLeftStayUnknown) {
  expect_nobody(judge_attempt(attempt(143, {terminated("nid001304", {0, 1, 2, 3})})),
                Kind::unknown);
}

// ---- innocent causes of a SIGKILL

TEST(Attribution, MemoryThatRanOutExplainsAKilledRank) {
  const Verdict v = judge_attempt(attempt(
      143,
      {killed("nid001306", {5}), cancel_banner(), terminated("nid001304", {0, 1, 2, 3}),
       message(Kind::oom, "slurmstepd-nid001306: error: Detected 1 oom_kill event", "nid001306")}));
  expect_nobody(v, Kind::oom);
}

TEST(Attribution, MemoryThatRanOutElsewhereDoesNotExplainAKilledHost) {
  const Verdict v = judge_attempt(
      attempt(143, {message(Kind::oom, "out of memory, halving the batch", "nid001304"),
                    killed("nid001306", {4, 5, 6, 7}), cancel_banner()}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(Attribution, ATaskKilledForMemoryIsOomThoughRcIs0) {
  Fact f = killed("nid001306", {4});
  f.kind = Kind::oom;
  f.text = "task 4: Out Of Memory";
  expect_nobody(judge_attempt(attempt(0, {f})), Kind::oom);
}

TEST(Attribution, RanksKilledOnTwoHostsAtOnceConvictNobody) {
  expect_nobody(judge_attempt(attempt(137, {killed("nid001304", {0}), killed("nid001306", {4})},
                                      {"nid001304", "nid001306", "nid001308"})),
                Kind::unknown);
}

TEST(Attribution, ASingleHostIsNeverConvictedByItsOwnDeaths) {
  const Verdict v = judge_attempt(attempt(137, {killed("nid1", {0, 1, 2, 3})}, {"nid1"}));
  expect_nobody(v, Kind::oom);
  EXPECT_LT(v.confidence, 0.5);
}

TEST(Attribution, KilledRanksWithoutAHostAreFoundThroughTheLaunchersMap) {
  Fact f = killed("", {4, 5});
  expect_host(judge_attempt(attempt(137, {f})), Kind::node_failure, "nid001306",
              Provenance::scraped);
  f.ranks = {8};  // rank 8 of 8 is nobody
  expect_nobody(judge_attempt(attempt(137, {f})), Kind::unknown);
  f.ranks = {3, 4};  // on two hosts
  expect_nobody(judge_attempt(attempt(137, {f})), Kind::unknown);
}

TEST(Attribution, APlacementInTheOutputFillsAGapInTheMap) {
  Fact placed = fact(Event::placement, Kind::unknown, Role::context, "rank.line", "[rank=4/7]");
  placed.host = "nid001306-hsn0.site";
  placed.ranks = {4};
  AttemptRecord record = attempt(137, {placed, killed("", {4})});
  record.host_of_rank.clear();
  expect_host(judge_attempt(record), Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(Attribution, PeersThatGiveUpAfterwardsDoNotClearTheKilledHost) {
  const Verdict v = judge_attempt(
      attempt(137, {message(Kind::app_error, "ConnectionResetError: peer"),
                    killed("nid001306", {4, 5, 6, 7}), exited("nid001304", {0, 1, 2, 3}, 1)}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
  EXPECT_NE(reason_against(v, 2).find("echo"), std::string::npos) << reason_against(v, 2);
}

TEST(Attribution, AShellsCode137IsASignal9) {
  expect_host(
      judge_attempt(attempt(137, {exited("nid001306", {4, 5, 6, 7}, 137), cancel_banner()})),
      Kind::node_failure, "nid001306", Provenance::scraped);
}

// ---- causes by kind

TEST(Attribution, TheMessageOutranksTheExitCodeThatRestatesIt) {
  expect_nobody(
      judge_attempt(attempt(1, {message(Kind::port_in_use, "errno: 98 - Address already in use"),
                                exited("nid001304", {0, 1, 2}, 1)})),
      Kind::port_in_use);
}

TEST(Attribution, AnEchoPrintedFirstYieldsToTroubleOfItsOwn) {
  expect_nobody(judge_attempt(attempt(
                    1, {message(Kind::collective_timeout, "Watchdog caught collective timeout"),
                        message(Kind::gpu_fault, "CUDA error: uncorrectable ECC error")})),
                Kind::gpu_fault);
}

TEST(Attribution, AmongEchoesTheFirstWins) {
  expect_nobody(judge_attempt(attempt(
                    1, {message(Kind::fabric_fault, "NET/OFI Request completed with error"),
                        message(Kind::app_error, "Traceback"), exited("nid001304", {0}, 1)})),
                Kind::fabric_fault);
  expect_nobody(judge_attempt(attempt(1, {crashed("nid001304", {0}, 11),
                                          message(Kind::fabric_fault, "Connection closed")})),
                Kind::app_error);
}

TEST(Attribution, ATracebackPrintedInTheTeardownIsAVictims) {
  const Verdict v = judge_attempt(attempt(
      143, {killed("nid001306", {4, 5, 6, 7}), teardown(), message(Kind::app_error, "Traceback")}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
  EXPECT_EQ(reason_against(v, 2), "after the teardown began (line 2)");
}

TEST(Attribution, AGenuineCauseMayBePrintedAfterTheTeardownBegan) {
  expect_nobody(judge_attempt(attempt(143, {exited("nid001306", {4}, 1), teardown(),
                                            message(Kind::filesystem_fault, "ENOSPC")})),
                Kind::filesystem_fault);
}

TEST(Attribution, AHardwareGpuErrorConvictsAKnownHost) {
  for (const int xid : {48, 63, 64, 74, 79, 92, 94, 95}) {
    const Verdict v = judge_attempt(attempt(
        1,
        {message(Kind::gpu_fault, "NVRM: Xid (PCI:0000:41:00): " + std::to_string(xid) + ", pid=1",
                 "nid001306")}));
    expect_host(v, Kind::gpu_fault, "nid001306", Provenance::scraped);
  }
}

TEST(Attribution, AnApplicationGpuErrorNeverConvicts) {
  for (const int xid : {13, 31, 43}) {
    expect_nobody(judge_attempt(attempt(
                      1, {message(Kind::gpu_fault,
                                  "NVRM: Xid (PCI:0000:41:00): " + std::to_string(xid) + ", pid=1",
                                  "nid001306")})),
                  Kind::app_error);
  }
}

TEST(Attribution, AnUnknownXidIsAGpuFaultThatConvictsNobody) {
  expect_nobody(judge_attempt(attempt(1, {message(Kind::gpu_fault, "Xid: 999", "nid001306")})),
                Kind::gpu_fault);
}

TEST(Attribution, AGpuErrorIsPlacedByTheLabelOfItsLineOrItsRank) {
  Fact f = message(Kind::gpu_fault, "uncorrectable ECC error");
  f.label = "nid001306-hsn0.hsn.example";
  expect_host(judge_attempt(attempt(1, {f})), Kind::gpu_fault, "nid001306", Provenance::scraped);
  f.label.clear();
  f.ranks = {5};
  expect_host(judge_attempt(attempt(1, {f})), Kind::gpu_fault, "nid001306", Provenance::scraped);
}

TEST(Attribution, AGpuErrorWithoutAHostConvictsOnlyTheOnlyHost) {
  const std::vector<Fact> facts = {message(Kind::gpu_fault, "uncorrectable NVLink error")};
  expect_nobody(judge_attempt(attempt(1, facts)), Kind::gpu_fault);
  expect_host(judge_attempt(attempt(1, facts, {"nid1"})), Kind::gpu_fault, "nid1",
              Provenance::scraped);
}

TEST(Attribution, TheSameGpuErrorOnTwoHostsConvictsNobody) {
  expect_nobody(judge_attempt(attempt(1, {message(Kind::gpu_fault, "ECC", "nid001304"),
                                          message(Kind::gpu_fault, "ECC", "nid001306")})),
                Kind::gpu_fault);
}

TEST(Attribution, ALabelDoesNotMakeAReporterACulpritOrASuspect) {
  Fact f = message(Kind::fabric_fault, "Connection closed by remote peer");
  f.label = "nid001306";
  const Verdict v = judge_attempt(attempt(1, {f}));
  expect_nobody(v, Kind::fabric_fault);
  EXPECT_TRUE(v.suspects.empty());
}

TEST(Attribution, AStaleFileHandleOnOneHostMakesItSuspectOnManyNobody) {
  Verdict v = judge_attempt(
      attempt(1, {message(Kind::filesystem_fault, "Stale file handle", "nid001306")}));
  expect_nobody(v, Kind::filesystem_fault);
  EXPECT_EQ(v.suspects, Hosts{"nid001306"});
  v = judge_attempt(
      attempt(1, {message(Kind::filesystem_fault, "Stale file handle", "nid001304"),
                  message(Kind::filesystem_fault, "Stale file handle", "nid001306")}));
  expect_nobody(v, Kind::filesystem_fault);
  EXPECT_TRUE(v.suspects.empty());
}

TEST(Attribution, TaskLaunchesThatFailOnManyNodesAreCongestion) {
  std::vector<Fact> facts;
  for (const char* host : {"nid1", "nid2", "nid3"}) {
    Fact f = fact(Event::launcher, Kind::node_failure, Role::cause, "srun.task_launch_failed",
                  "Task launch failed on node: Socket timed out");
    f.host = host;
    facts.push_back(f);
  }
  const Hosts hosts = {"nid1", "nid2", "nid3", "nid4"};
  expect_nobody(judge_attempt(attempt(1, facts, hosts)), Kind::launcher_fault);
  facts.resize(1);
  expect_host(judge_attempt(attempt(1, facts, hosts)), Kind::node_failure, "nid1",
              Provenance::scraped);
}

TEST(Attribution, ACommandThatCannotBeRunIsTheEnvironmentsFault) {
  expect_nobody(judge_attempt(attempt(127, {exited("nid001304", {0, 1, 2, 3}, 127)})),
                Kind::env_fault);
}

TEST(Attribution, TheWatchdogWithoutACauseIsAHangAndConvictsNobody) {
  AttemptRecord record =
      attempt(137, {our_signal(Kind::hang), terminated("nid001304", {0, 1, 2, 3}),
                    killed("nid001306", {4, 5, 6, 7})});
  record.ending = Ending::watchdog;
  expect_nobody(judge_attempt(record), Kind::hang);
  record.exit = exit_code(0);
  expect_nobody(judge_attempt(record), Kind::hang);
}

TEST(Attribution, TheWatchdogAfterACollectiveTimeoutIsACollectiveTimeout) {
  AttemptRecord record = attempt(
      137,
      {message(Kind::collective_timeout, "Watchdog caught collective"), our_signal(Kind::hang)});
  record.ending = Ending::watchdog;
  expect_nobody(judge_attempt(record), Kind::collective_timeout);
}

TEST(Attribution, ALostNodeBehindASilenceIsFound) {
  AttemptRecord record = attempt(137, {node_lost("nid001306"), our_signal(Kind::hang)});
  record.ending = Ending::watchdog;
  expect_host(judge_attempt(record), Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(Attribution, ACleanEndIsSuccessWhateverTheProgramPrintedAndSurvived) {
  const Verdict v =
      judge_attempt(attempt(0, {message(Kind::app_error, "Traceback"),
                                message(Kind::fabric_fault, "warning: EQ overflow", "nid001304")}));
  expect_nobody(v, Kind::success);
  EXPECT_EQ(reason_against(v, 0), "the job ended with exit code 0 all the same");
}

TEST(Attribution, ABadExitWithNoEvidenceIsUnknown) {
  const Verdict v = judge_attempt(attempt(1, {}));
  expect_nobody(v, Kind::unknown);
  EXPECT_EQ(v.summary, "unknown: the launcher ended with exit code 1 and nothing says why");
}

TEST(Attribution, TheGrammarsAdviceComesBeforeOurOwn) {
  AttemptRecord record = attempt(1, {message(Kind::filesystem_fault, "No space left on device")});
  record.facts[0].pattern = "filesystem.no_space";
  const auto advice = [](std::string_view id) {
    return std::string(id == "filesystem.no_space" ? "make room" : "");
  };
  EXPECT_EQ(attribute(record, key_of, advice).remedy, "make room");
  record.facts[0].pattern = "another";
  EXPECT_NE(attribute(record, key_of, advice).remedy.find("lfs df"), std::string::npos);
}

// ---- hosts that are not this attempt's

TEST(Attribution, ANodeOutsideTheActiveSetIsSetAside) {
  const Verdict v = judge_attempt(attempt(0, {node_lost("nid009999")}));
  expect_nobody(v, Kind::success);
  EXPECT_EQ(reason_against(v, 0), "nid009999 is not one of this attempt's hosts");
}

TEST(Attribution, EverySpellingOfANodeIsTheSameNode) {
  const Verdict v = judge_attempt(attempt(0, {node_lost("nid001306-hsn0.hsn.cm.example.gov")}));
  expect_host(v, Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(Attribution, ContextFactsAreNeverEvidence) {
  Fact banner = fact(Event::node_lost, Kind::node_failure, Role::context, "reporter", "proxy says");
  banner.host = "nid001306";
  expect_nobody(judge_attempt(attempt(1, {banner})), Kind::unknown);
}

TEST(Attribution, AnAddressNeedsAMap) {
  Fact f = message(Kind::node_failure, "Connection closed by peer");
  f.ip = "198.51.100.42";
  expect_nobody(judge_attempt(attempt(1, {f})), Kind::node_failure);
}

// ---- PALS and Hydra, whose launchers print no banner

TEST(AttributionPals, TheRankKilledBeforeTheSignal15LinesIsTheVictim) {
  const Verdict v = judge_attempt(attempt(
      143, {killed("x1921c7s1b0n0-hsn0.hsn.cm.site", {4}), terminated("x1921c7s1b0n1", {0})},
      {"x1921c7s1b0n1", "x1921c7s1b0n0"}));
  expect_host(v, Kind::node_failure, "x1921c7s1b0n0", Provenance::scraped);
}

TEST(AttributionPals, ACrashAfterTheFirstSignal15LineIsTeardown) {
  const Verdict v =
      judge_attempt(attempt(143, {terminated("x1", {0}), crashed("x2", {4}, 11)}, {"x1", "x2"}));
  expect_nobody(v, Kind::unknown);
}

// ---- ends that the program itself brought about

Fact mpi_abort(int rank) {
  Fact f = fact(Event::aborted, Kind::app_error, Role::cause, "mpich.abort",
                "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3");
  f.ranks = {rank};
  return f;
}

TEST(AttributionAbort, RanksKilledBehindAnMpiAbortAreItsVictims) {
  expect_nobody(judge_attempt(attempt(1, {mpi_abort(3), killed("nid001306", {4, 5, 6, 7}),
                                          exited("nid001304", {3}, 1)})),
                Kind::app_error);
}

TEST(AttributionAbort, RanksKilledBeforeAnMpiAbortAreNot) {
  expect_host(judge_attempt(attempt(1, {killed("nid001306", {4, 5, 6, 7}), mpi_abort(3)})),
              Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(AttributionAbort, AProgramsErrorThatSrunCancelledTheStepForIsNoCancel) {
  Fact error = message(Kind::app_error, "*** MPI_ERRORS_ARE_FATAL");
  expect_nobody(judge_attempt(attempt(16, {error, cancel_banner(), exited("nid001304", {2}, 16),
                                           killed("nid001306", {4, 5, 6, 7})})),
                Kind::app_error);
  // Nobody left by itself: somebody's scancel, and the error was survived.
  expect_nobody(
      judge_attempt(attempt(137, {error, cancel_banner(), killed("nid001306", {4, 5, 6, 7})})),
      Kind::cancelled);
}

// ---- nodes that never came up

Fact not_booted(std::string host) {
  Fact f = fact(Event::not_booted, Kind::node_failure, Role::context, "srun.nodes_not_ready",
                "srun: error: Nodes are still not ready");
  f.host = std::move(host);
  return f;
}

TEST(AttributionBoot, OneNodeThatNeverCameUpIsLost) {
  expect_host(judge_attempt(attempt(1, {node_lost("nid001306"), not_booted("nid001306")})),
              Kind::node_failure, "nid001306", Provenance::scraped);
}

TEST(AttributionBoot, OfSeveralNoneIsToBlame) {
  expect_nobody(judge_attempt(attempt(
                    1, {node_lost("nid001306"), not_booted("nid001304"), not_booted("nid001306")})),
                Kind::env_fault);
}

// ---- parts of one node

TEST(AttributionPart, AnAdapterThatItsOwnDriverCallsDeadConvictsOneHostOfSeveral) {
  Fact part = message(Kind::fabric_fault, "mlx5_core: device's health compromised", "nid001306");
  part.event = Event::part_failed;
  expect_host(judge_attempt(attempt(1, {part})), Kind::fabric_fault, "nid001306",
              Provenance::scraped);
  Fact other = part;
  other.host = "nid001304";
  expect_nobody(judge_attempt(attempt(1, {part, other})), Kind::fabric_fault);
}

TEST(AttributionGpu, AnErrorThatProvesItCountsThoughASuspiciousOneCameFirst) {
  Fact unproven = message(Kind::gpu_fault, "NVRM: Xid (PCI:0000:41:00): 119, GSP", "nid001306");
  Fact proof = message(Kind::gpu_fault, "NVRM: Xid (PCI:0000:41:00): 79, bus", "nid001306");
  expect_nobody(judge_attempt(attempt(1, {unproven})), Kind::gpu_fault);
  expect_host(judge_attempt(attempt(1, {unproven, proof})), Kind::gpu_fault, "nid001306",
              Provenance::scraped);
}

}  // namespace
}  // namespace ezpz::verdict
