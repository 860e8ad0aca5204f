// Whole logs of runtimes, shaped like those of real failures: what is a cause, of which kind, and
// on whose host. Messages here come out on hosts that do not concern them, from survivors of what
// happened elsewhere: that none of those is named is decided by the grammar.
#include <gtest/gtest.h>

#include <algorithm>

#include "evidence/stream.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

std::vector<Fact> facts_of(std::string_view log) {
  Stream stream(test_grammar());
  stream.feed(log);
  stream.finish();
  return stream.facts();
}

std::vector<Fact> causes_in(std::string_view log) {
  std::vector<Fact> causes = facts_of(log);
  std::erase_if(causes, [](const Fact& fact) { return fact.role != Role::cause; });
  return causes;
}

struct Log {
  const char* name;
  const char* text;
  std::vector<Kind> causes;        // of every cause, in order
  std::vector<std::string> named;  // hosts that causes name, in order; others are innocent
};

const std::vector<Log>& logs() {
  static const std::vector<Log> all{
      {"an InfiniBand peer that stopped answering: neither end is proven sick",
       "hostx-a:984:1357 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer "
       "198.51.100.59<44206> with status=12 opcode=129 len=65536 vendor err 129 (Recv)\n"
       "hostx-a:984:1357 [4] NCCL INFO transport/net.cc:1298 -> 6\n"
       "hostx-a:984:1357 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer "
       "198.51.100.59<44206> with status=5 opcode=32656 len=32659 vendor err 249 (Recv)\n"
       "[rank4]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, "
       "remote process exited or there was a network error, NCCL version 2.21.5\n",
       {Kind::fabric_fault},
       {}},
      {"GPU memory used up, told after the others lost that rank",
       "ng30903x:3063025:3066048 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed "
       "by remote peer ng30903x-ib.narv.example<51159>\n"
       "ng30903x:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n",
       {Kind::app_error},
       {}},
      {"a training that runs on, over plain sockets",
       "ds-ml-0x:17754:17754 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so).\n"
       "ds-ml-0x:17754:17754 [0] NCCL INFO NET/IB : No device found.\n"
       "ds-ml-0x:17754:17754 [0] NCCL INFO NET/OFI No eligible providers were found\n"
       "ds-ml-0x:17754:17754 [0] NCCL INFO Using network Socket\n",
       {},
       {}},
      {"a survivor's error printed before the cause",
       "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, "
       "remote process exited or there was a network error, NCCL version 2.21.5\n"
       "[rank9]: IndexError: list index out of range\n",
       {Kind::app_error},
       {}},
      {"an ECC error that the watchdog met is no timeout",
       "[E ProcessGroupNCCL.cpp:916] [Rank 1] NCCL watchdog thread terminated with exception: CUDA "
       "error: uncorrectable ECC error encountered\n"
       "CUDA kernel errors might be asynchronously reported at some other API call\n",
       {Kind::gpu_fault},
       {}},
      {"a timeout, and what follows from it on the ranks that lose the store",
       "[rank3]:[E318 10:00:40.1 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective "
       "operation timeout: WorkNCCL(SeqNum=51, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
       "Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
       "[rank12]:[W318 10:00:41.9 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=135, "
       "addr=[sg-0-1.sg.example]:48750, remote=[sg-0.pod.example]:20000): Connection reset by "
       "peer\n"
       "[rank8]:[W318 10:00:41.9 ProcessGroupNCCL.cpp:1771] [PG ID 0 PG GUID 0 Rank 8] Failed to "
       "check the \"should dump\" flag on TCPStore, (maybe TCPStore server has shut down too "
       "early), with error: Connection reset by peer\n",
       {Kind::collective_timeout},
       {}},
      {"an adapter that may not reach the GPU's memory",
       "node2x:14159:14190 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from "
       "peer "
       "192.0.2.3<41234> with error 4, opcode 0, len 0, vendor err 81 (Send)\n",
       {Kind::env_fault},
       {}},
      {"a program's bad access on two GPUs: \"node-9\" is no host",
       "Memory access fault by GPU node-9 (Agent handle: 0x7d5f990) on address 0x14a1cfe01000. "
       "Reason: Unknown.\n"
       "Memory access fault by GPU node-4 (Agent handle: 0x7d581a0) on address 0x153d9fe01000. "
       "Reason: Unknown.\nGPU core dump failed\n",
       {Kind::app_error, Kind::app_error},
       {}},
      {"a GPU fallen off the bus, in the kernel's words",
       "Sep 21 10:00:00 nid001306 kernel: NVRM: Xid (PCI:0000:41:00): 79, pid=4019, GPU has fallen "
       "off the bus.\n"
       "nid001304: step 40 is late\n",
       {Kind::gpu_fault},
       {"nid001306"}},
      {"Lustre evicts one client",
       "Sep 21 10:00:00 nid001306 kernel: LustreError: 167-0: scratch-OST0003-osc-ffff8b: This "
       "client was evicted by scratch-OST0003; in progress operations using this service will "
       "fail.\n"
       "Sep 21 10:00:00 nid001304 kernel: Lustre: scratch-OST0003-osc-ffff8b: Connection to "
       "scratch-OST0003 (at 198.51.100.9@o2ib) was lost; in progress operations using this service "
       "will wait for recovery to complete\n",
       {Kind::filesystem_fault},
       {"nid001306"}},
      {"corrected errors and resets that worked are no trouble",
       "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0\n"
       "nid1 kernel: amdgpu 0000:c1:00.0: amdgpu: 0 uncorrectable hardware errors detected in gfx "
       "block, no user action is needed.\n"
       "nid1 kernel: amdgpu 0000:c1:00.0: amdgpu: GPU reset(2) succeeded!\n"
       "libfabric:16642:1701636928::cxi:core:cxip_cq_eq_progress():531<warn> nid1: Cassini Event "
       "Queue overflow detected.\n",
       {},
       {}},
      {"a streaming data set that reaches nobody",
       "'(ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Read timed "
       "out.\"))' thrown while requesting HEAD https://huggingface.co/datasets/x/y.parquet\n",
       {},
       {}},
      {"a rendezvous lost where nothing else had failed",
       "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node "
       "'node04x.localdomain_3882442_0' has failed to shutdown the rendezvous '9987b766' due to an "
       "error of type RendezvousConnectionError.\n",
       {Kind::env_fault},
       {}},
      {"the same warning where a rank had failed says nothing",
       "[rank0]: ValueError: loss is nan\n"
       "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
       "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node "
       "'node04x.localdomain_3882442_0' has failed to shutdown the rendezvous '9987b766' due to an "
       "error of type RendezvousConnectionError.\n",
       {Kind::app_error},
       {}},
  };
  return all;
}

TEST(RuntimeLogs, EachHasItsCausesAndNoOthers) {
  for (const Log& log : logs()) {
    SCOPED_TRACE(log.name);
    std::vector<Kind> kinds;
    for (const Fact& fact : causes_in(log.text)) kinds.push_back(fact.kind);
    EXPECT_EQ(kinds, log.causes);
  }
}

TEST(RuntimeLogs, NoHostIsNamedThatAMessageIsNotAbout) {
  for (const Log& log : logs()) {
    SCOPED_TRACE(log.name);
    std::vector<std::string> named;
    for (const Fact& fact : causes_in(log.text)) {
      if (!fact.host.empty()) named.push_back(fact.host);
    }
    EXPECT_EQ(named, log.named);
  }
}

constexpr const char* kBlock =
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "train.py FAILED\n"
    "Failures:\n"
    "[1]:\n"
    "  time      : 2031-04-10_20:18:07\n"
    "  host      : nid001306\n"
    "step: 41 loss: 5.1\n"
    "  rank      : 2 (local_rank: 2)\n"
    "  exitcode  : -15 (pid: 812914)\n"
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  time      : 2031-04-10_20:18:07\n"
    "  host      : nid001306\n"
    "  rank      : 3 (local_rank: 3)\n"
    "NCCL INFO something between\n"
    "  exitcode  : -9 (pid: 812917)\n"
    "  error_file: <N/A>\n"
    "  traceback : Signal 9 (SIGKILL) received by PID 812917\n";

TEST(RuntimeLogs, TorchrunsBlockIsOneDeathAndItsVictims) {
  const std::vector<Fact> causes = causes_in(kBlock);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].event, Event::death);
  EXPECT_EQ(causes[0].host, "nid001306");
  EXPECT_EQ(causes[0].ranks, std::vector<int>{3});
  EXPECT_EQ(causes[0].signal, 9);
  const std::vector<Fact> facts = facts_of(kBlock);
  const auto victim = std::find_if(facts.begin(), facts.end(), [](const Fact& fact) {
    return fact.pattern == "torchrun.other_failure";
  });
  ASSERT_NE(victim, facts.end());
  EXPECT_EQ(victim->role, Role::cascade);
  EXPECT_EQ(victim->ranks, std::vector<int>{2});
}

TEST(RuntimeLogs, TorchrunsBlockTellsWhereRanksRan) {
  Stream stream(test_grammar());
  stream.feed(kBlock);
  EXPECT_EQ(stream.topology().host_of(2), "nid001306");
  EXPECT_EQ(stream.topology().host_of(3), "nid001306");
}

TEST(RuntimeLogs, ASequenceNumberOfASubgroupIsNotHeldAgainstTheOthers) {
  const std::vector<Fact> facts = causes_in(
      "[rank12]:[E1113 01:02:03.4 ProcessGroupNCCL.cpp:616] [PG ID 3 PG GUID 7(mesh_tp) Rank 0] "
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, "
      "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
      "[rank5]:[E1113 01:02:03.4 ProcessGroupNCCL.cpp:616] [PG ID 0 PG GUID 0(default_pg) Rank 5] "
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=51, OpType=ALLREDUCE, "
      "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing "
      "out.\n");
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[0].ranks, std::vector<int>{12});
  EXPECT_EQ(facts[0].seq, -1);
  EXPECT_EQ(facts[1].ranks, std::vector<int>{5});
  EXPECT_EQ(facts[1].seq, 51);
}

TEST(RuntimeLogs, NcclsPrefixIsALabelAndPlacesWhatAHostSaysOfItself) {
  const std::vector<Fact> facts = causes_in(
      "[2031-06-10 21:49:11] nid001306:984:1357 [4] enqueue.cc:1298 NCCL WARN Cuda failure 220 "
      "'uncorrectable NVLink error detected during the execution'\n");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].kind, Kind::gpu_fault);
  EXPECT_EQ(facts[0].host, "");
  EXPECT_EQ(facts[0].label, "nid001306");
}

}  // namespace
}  // namespace ezpz::evidence
