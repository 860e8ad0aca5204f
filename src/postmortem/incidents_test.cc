// Public failures of launchers like this one, from the log to the verdict. Each test is named after
// the incident's number in the project's list, and holds a log of the form that was met.
#include <gtest/gtest.h>

#include "postmortem/autopsy.h"
#include "postmortem/tell.h"

namespace ezpz::postmortem {
namespace {

using namespace std::string_view_literals;

const evidence::Grammar& grammar() {
  static const evidence::Grammar loaded = evidence::Grammar::load().value();
  return loaded;
}

const NodeNaming kNaming{{".hsn.*", ".hostmgmt#.*"}, {"-hsn#"}};

struct Case {
  std::string log;
  std::vector<std::string> hosts = {};
  std::optional<int> rc = {};
  std::vector<std::string> retired = {};
  std::optional<double> end_time_s = {};  // by the scheduler; the attempt ended at 1000
  verdict::NetworkWish network = {};
};

Autopsy judge(const Case& of) {
  Circumstances known;
  known.rc = of.rc;
  known.active = make_nodes(of.hosts, kNaming);
  known.naming = kNaming;
  known.network = of.network;
  evidence::Stream stream(grammar());
  stream.feed(of.log);
  stream.finish();
  verdict::AttemptRecord record = record_of(stream, known);
  record.retired_earlier = of.retired;
  record.scheduler.end_time_s = of.end_time_s;
  if (of.end_time_s) record.ended_s = 1000;
  return examine(std::move(record), kNaming, grammar());
}

std::vector<std::string> culprits(const Autopsy& autopsy) {
  std::vector<std::string> hosts;
  for (const verdict::Culprit& culprit : autopsy.verdict.culprits) hosts.push_back(culprit.host);
  return hosts;
}

using Hosts = std::vector<std::string>;

TEST(IncidentLog02, SrunsReturnCode143OfAKilledNodeIsANodeFailure) {
  const Autopsy a = judge({
      .log = "step=12 loss=3.1\n"
             "srun: error: nid001306: tasks 4-7: Killed\n"
             "srun: launch/slurm: _step_signal: Terminating StepId=2.1\n"
             "slurmstepd-nid001304: error: *** STEP 2.1 ON nid001304 CANCELLED AT "
             "2031-04-02T11:31:40 ***\n"
             "srun: error: nid001304: tasks 0-3: Terminated\n"
             "srun: Force Terminated StepId=2.1\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 143,
  });
  EXPECT_EQ(a.verdict.kind, Kind::node_failure);
  EXPECT_EQ(culprits(a), Hosts{"nid001306"});
}

TEST(IncidentLog03, AMemoryErrorFarAboveIsTheCauseAndNotTheReturnCode) {
  std::string log = "[rank5141]: MemoryError: std::bad_alloc\n";
  for (int i = 0; i < 5000; ++i) log += "[rank12]: waiting for peers\n";
  log +=
      "x4301c0s0b0n0.hsn.cm.site.example: rank 5141 died from signal 15\n"
      "x4301c0s1b0n0.hsn.cm.site.example: rank 88 died from signal 15\n";
  const Autopsy a = judge({.log = log, .rc = 143, .end_time_s = 1000 + 42'900});
  EXPECT_EQ(a.verdict.kind, Kind::oom);
  EXPECT_TRUE(culprits(a).empty());
  EXPECT_NE(tell(a).find("line 1 "), std::string::npos) << tell(a);
}

TEST(IncidentLog03, ReturnCode143WithHoursLeftIsNotWalltime) {
  const Autopsy a = judge({
      .log = "step: 912\n"
             "x4112c0s1b0n0.hsn.cm.site.example: rank 0 died from signal 15\n",
      .rc = 143,
      .end_time_s = 1000 + 42'900,
  });
  EXPECT_EQ(a.verdict.kind, Kind::unknown);
}

TEST(IncidentLog07, OnlyARetiredHostIsNamedAndNobodyIsGuessed) {
  const Autopsy a = judge({
      .log = "srun: error: Node failure on nid001308\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 1,
      .retired = {"nid001308"},
  });
  EXPECT_TRUE(culprits(a).empty());
  EXPECT_TRUE(a.verdict.retired_host_named);
  EXPECT_NE(a.decision.action, verdict::Action::swap);
}

TEST(IncidentLog08, AFullStorageTargetIsRetriedInPlaceAndTheUserIsToldWhereToLook) {
  const Autopsy a = judge({
      .log = "step=40 loss=2\n"
             "[rank3]: OSError: [Errno 28] No space left on device: '/scratch/run/step-40'\n"
             "srun: error: nid001306: task 3: Exited with exit code 1\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 1,
  });
  EXPECT_EQ(a.verdict.kind, Kind::filesystem_fault);
  EXPECT_EQ(a.decision.action, verdict::Action::retry_same);
  EXPECT_NE(a.verdict.remedy.find("lfs df"), std::string::npos);
}

TEST(IncidentLog09, TheSickChildOfAPalsTreeIsTheCulprit) {
  const Autopsy a = judge({
      .log = "ping failed on x4607c6s4b0n0: Couldn't forward RPC "
             "ping(24c93b8c-0000-4fb5-a8f0-53cff4cbbe42) to child "
             "x4607c7s6b0n0.hostmgmt2607.cm.site.example: Resource temporarily unavailable\n",
      .hosts = {"x4607c6s4b0n0", "x4607c7s6b0n0", "x4607c7s7b0n0"},
      .rc = 143,
  });
  EXPECT_EQ(culprits(a), Hosts{"x4607c7s6b0n0"});
}

TEST(IncidentLog12, AnUndecodableByteHidesNothing) {
  const Autopsy a = judge({
      .log =
          std::string("loss \xff\xfe\x80 \0 nan\n"sv) + "srun: error: Node failure on nid001306\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 0,
  });
  EXPECT_EQ(culprits(a), Hosts{"nid001306"});
}

TEST(IncidentLog13, ColourInsideTokensHidesNeitherStepsNorTheTrailer) {
  const Autopsy a = judge({
      .log = "\x1b[1mit\x1b[0mer\x1b[0m=\x1b[36m42\x1b[0m loss=2\n"
             "\x1b[31msrun: err\x1b[0mor: Node fail\x1b[1mure on nid00\x1b[0m1306\x1b[0m\n",
      .hosts = {"nid001304", "nid001306"},
  });
  EXPECT_EQ(a.record.progress.last_step, 42);
  EXPECT_EQ(culprits(a), Hosts{"nid001306"});
}

TEST(IncidentLog14, ProgressIsReadInEveryForm) {
  for (const char* line : {"step=18", "step: 18", "iter=18", "iteration 18", "iter 18/500"}) {
    EXPECT_EQ(judge({.log = std::string(line) + "\n"}).record.progress.last_step, 18) << line;
  }
}

const verdict::NetworkWish kPlugin{"AWS Libfabric", false, "module load nccl/2.24.3", ""};

TEST(IncidentLog17, AStoreThatIsLostBeforeTheFirstStepOnSocketsIsTheMissingPlugin) {
  const std::string log =
      "nid001304:3021:3021 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so\n"
      "nid001304:3021:3021 [0] NCCL INFO Using network Socket\n"
      "nid001306:4411:4411 [0] NCCL INFO Using network Socket\n"
      "nid001304:3021:3100 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/Socket/0\n"
      "[rank4]:[W318 10:00:41.915284135 TCPStore.cpp:125] [c10d] recvValue failed on "
      "SocketImpl(fd=135, addr=[nid001306]:48750, remote=[nid001304]:20000): Connection reset by "
      "peer\n";
  const Autopsy a =
      judge({.log = log, .hosts = {"nid001304", "nid001306"}, .rc = 1, .network = kPlugin});
  EXPECT_EQ(a.verdict.kind, Kind::env_fault);
  EXPECT_EQ(a.verdict.remedy, "module load nccl/2.24.3");
  EXPECT_TRUE(culprits(a).empty());
  EXPECT_NE(tell(a).find("net:  Socket"), std::string::npos) << tell(a);

  // Where sockets are the network there is, or after steps were made, it is what it reads like.
  const std::vector<std::string> hosts = {"nid001304", "nid001306"};
  EXPECT_EQ(judge({.log = log, .hosts = hosts, .rc = 1}).verdict.kind, Kind::fabric_fault);
  EXPECT_NE(judge({.log = "step=5 loss=2\n" + log, .hosts = hosts, .rc = 1, .network = kPlugin})
                .verdict.kind,
            Kind::env_fault);
}

TEST(IncidentLog18, TheLibraryThatWasLoadedIsToldAndNotTheOneAskedFor) {
  const Autopsy a = judge({
      .log = "NCCL version 2.29.7+cuda13.0\n"
             "nid001304:3021:3021 [0] NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)\n"
             "nid001304:3021:3021 [0] NCCL INFO Using network AWS Libfabric\n"
             "step=1 loss=2\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 0,
      .network = kPlugin,
  });
  EXPECT_EQ(a.verdict.kind, Kind::success);
  EXPECT_NE(tell(a).find("net:  AWS Libfabric, provider cxi, library 2.29.7+cuda13.0"),
            std::string::npos)
      << tell(a);
}

TEST(IncidentLog21, AHangRightAfterTheStartIsNoProgressSinceTheStart) {
  const Autopsy a = judge({
      .log = "[rank0]: applying LoRA r=8 to attn,mlp\n"
             "nid001304:3021:3100 [0] NCCL INFO comm 0x1 rank 0 nranks 8 - Init COMPLETE\n"
             "watchdog: no output for 600.0s. Sending SIGTERM\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 124,
  });
  EXPECT_EQ(a.verdict.kind, Kind::hang);
  EXPECT_TRUE(culprits(a).empty());
}

TEST(IncidentLog19, MpichWithoutItsGpuLibraryIsTheEnvironmentAndNoNode) {
  const Autopsy a = judge({
      .log = "MPICH ERROR [Rank 0] [job id 2.0] [Sat Jul  5 16:54:39 2031] [nid001304] - Abort(-1) "
             "(rank 0 in comm 0): MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but GTL "
             "library is not linked\n"
             "srun: error: nid001304: tasks 0-3: Segmentation fault\n"
             "srun: error: nid001306: tasks 4-7: Segmentation fault\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 139,
  });
  EXPECT_EQ(a.verdict.kind, Kind::env_fault);
  EXPECT_EQ(a.decision.action, verdict::Action::stop);
  EXPECT_NE(a.verdict.remedy.find("MPICH_GPU_SUPPORT_ENABLED=0"), std::string::npos);
}

TEST(IncidentLog20, AnUnsupportedCompileIsTheEnvironmentWithARemedy) {
  const Autopsy a = judge({
      .log = "[rank0]: Traceback (most recent call last):\n"
             "[rank0]: torch._dynamo.exc.Unsupported: call to a skipped function: 'skipped'\n"
             "srun: error: nid001304: task 0: Exited with exit code 1\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 1,
  });
  EXPECT_EQ(a.verdict.kind, Kind::env_fault);
  EXPECT_NE(a.verdict.remedy.find("--compile"), std::string::npos);
}

TEST(IncidentLog24, TorchsRefusalOfTiedWeightsInTwoGroupsIsTheEnvironmentWithARemedy) {
  const Autopsy a = judge({
      .log =
          "[rank0]: ValueError: Parameter 'model.embed_tokens.weight' is shared with a parameter "
          "already managed by another FSDP group. For shared/tied parameters, use "
          "fully_shard([module_a, module_b]) to place them in the same FSDP group.\n"
          "[rank4]: ValueError: Parameter 'model.embed_tokens.weight' is shared with a parameter "
          "already managed by another FSDP group. For shared/tied parameters, use "
          "fully_shard([module_a, module_b]) to place them in the same FSDP group.\n"
          "srun: error: nid001304: tasks 0-3: Exited with exit code 1\n"
          "srun: error: nid001306: tasks 4-7: Exited with exit code 1\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 1,
  });
  EXPECT_EQ(a.verdict.kind, Kind::env_fault);
  EXPECT_EQ(a.decision.action, verdict::Action::stop);
  EXPECT_NE(a.verdict.remedy.find("into one"), std::string::npos) << a.verdict.remedy;
}

TEST(IncidentLog24, TiedWeightsInTwoGroupsAreTheProgramsErrorAndCostNoSpare) {
  const Autopsy a = judge({
      .log = "[rank0]: ValueError: FSDP: tied weights in two wrap groups\n"
             "srun: error: nid001304: task 0: Exited with exit code 1\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 1,
  });
  EXPECT_EQ(a.verdict.kind, Kind::app_error);
  EXPECT_NE(a.decision.action, verdict::Action::swap);
}

TEST(IncidentLog25, AHangBeforeTheFirstStepIsCalledThatAndNamesNobody) {
  const Autopsy a = judge({
      .log = "Resolving data files\n"
             "watchdog: no output for 1800.0s. Sending SIGTERM\n"
             "x4310c2s2b0n0.hsn.cm.site.example: rank 204 died from signal 15\n",
      .hosts = {"x4310c2s2b0n0", "x4310c2s3b0n0"},
      .rc = 124,
  });
  EXPECT_EQ(a.verdict.kind, Kind::hang);
  EXPECT_TRUE(culprits(a).empty());
}

TEST(IncidentLog25, AHangThatWaitsForTheNetworkIsCalledThat) {
  const Autopsy a = judge({
      .log = "Resolving data files\n"
             "WARNING:datasets.download.streaming_download_manager:Got disconnected from remote "
             "data host. Retrying in 5sec [3/20]\n"
             "watchdog: no output for 1800.0s. Sending SIGTERM\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 124,
  });
  EXPECT_EQ(a.verdict.kind, Kind::hang);
  EXPECT_NE(a.verdict.summary.find("no progress since the start, waiting on the network"),
            std::string::npos)
      << a.verdict.summary;
  EXPECT_NE(a.verdict.remedy.find("HF_DATASETS_OFFLINE"), std::string::npos) << a.verdict.remedy;
}

TEST(IncidentLog29, AStepThatHangsAfterANodeLossIsStillANodeLoss) {
  const Autopsy a = judge({
      .log = "srun: error: Node failure on nid001306\n"
             "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
             "srun: error: nid001304: tasks 0-3: Killed\n",
      .hosts = {"nid001304", "nid001306"},
      .rc = 0,
  });
  EXPECT_EQ(culprits(a), Hosts{"nid001306"});
}

}  // namespace
}  // namespace ezpz::postmortem
