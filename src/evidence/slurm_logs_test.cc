// Whole Slurm logs, shaped like those of real failures: what matching alone must get right. Who is
// to blame is verdict's business; that no innocent host is called lost, and that a banner's host is
// never taken for one, is decided here.
#include <gtest/gtest.h>

#include <algorithm>

#include "evidence/stream.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

struct Log {
  const char* name;
  const char* text;
  std::vector<std::string> lost;     // hosts of node_lost facts, all of them guilty
  std::vector<std::string> unnamed;  // hosts that no cause may name
  std::vector<Kind> causes;          // kinds that a cause must have
};

const std::vector<Log>& logs() {
  static const std::vector<Log> all{
      {"a rank killed, the step ended by srun",
       "srun: error: nid001306: tasks 4-7: Killed\n"
       "srun: launch/slurm: _step_signal: Terminating StepId=2.1\n"
       "slurmstepd-nid001304: error: *** STEP 2.1 ON nid001304 CANCELLED AT 2031-07-03T02:59:56 "
       "***\n"
       "srun: error: nid001304: tasks 0-3: Terminated\n"
       "srun: Force Terminated StepId=2.1\n",
       {},
       {"nid001304"},
       {Kind::unknown}},
      {"the job's time limit, with srun's own teardown around it",
       "step 40 mock targets done\n"
       "srun: Force Terminated job 700001\n"
       "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
       "slurmstepd: error: *** STEP 700001.0 ON nid001411 CANCELLED AT 2031-07-03T02:59:56 DUE TO "
       "TIME LIMIT ***\n"
       "srun: error: nid001411: tasks 2,4-5,7: Terminated\n"
       "srun: Terminating job step 700001.0\n"
       "srun: error: nid001412: tasks 8-15: Terminated\n",
       {},
       {"nid001411", "nid001412"},
       {Kind::walltime}},
      {"a lost node, and a banner that names the first node",
       "srun: error: Node failure on jz-iam37x\n"
       "srun: Job step aborted: Waiting up to 62 seconds for job step to finish.\n"
       "slurmstepd: error: *** STEP 1943001.0 ON jz-iam17x CANCELLED AT 2031-03-06T03:17:51 DUE TO "
       "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
       {"jz-iam37x"},
       {"jz-iam17x"},
       {Kind::node_failure}},
      {"a lost node beside a port scanner's visit",
       "Learning iteration 927/4000\n"
       "srun: error: wrap_on_data: [scan7.scanner.example:13610] on_data returned rc: Incompatible "
       "versions of client and server code\n"
       "srun: error: Node failure on c571-003x\n",
       {"c571-003x"},
       {"scan7.scanner.example"},
       {Kind::node_failure}},
      {"a lost node and PMIx reporters",
       "slurmstepd: error:  mpi/pmix_v5: pmixp_p2p_send: ccexe94x [4]: pmixp_utils.c:469: send "
       "failed, rc=1001, exceeded the retry limit\n"
       "slurmstepd: error:  mpi/pmix_v5: _slurm_send: ccexe94x [4]: pmixp_server.c:1581: Cannot "
       "send "
       "message to /var/spool/slurmd/stepd.slurm.pmix.656.0, size = 46979, hostlist:\n(null)\n"
       "srun: error: Node failure on ccexe91x\n",
       {"ccexe91x"},
       {"ccexe94x"},
       {Kind::node_failure}},
      {"a node cut off: the survivor is the one printed Killed",
       "srun: error: Node failure on nid000002\n"
       "srun: error: nid000001: tasks 0-1: Killed\n"
       "srun: Force Terminated StepId=2.1\n",
       {"nid000002"},
       {},
       {Kind::node_failure}},
      {"a requeue after preemption",
       "submitit WARNING (2031-08-12 02:06:11,453) - Caught signal SIGUSR2 on gpu-b01: this job is "
       "preempted.\n"
       "slurmstepd: error: *** JOB 608 ON gpu-b01 CANCELLED AT 2031-08-12T02:06:12 DUE TO JOB "
       "REQUEUE ***\n"
       "slurmstepd: error: Failed to send MESSAGE_TASK_EXIT: Connection refused\n",
       {},
       {"gpu-b01"},
       {Kind::preempted}},
      {"a cancelled step under the newer prefix",
       "[2031-09-21T10:00:00.123] error: *** JOB 7 ON node1x CANCELLED AT 2031-09-21T10:00:00 DUE "
       "to SIGNAL Terminated ***\n",
       {},
       {"node1x"},
       {}},
      {"the step's own failure banner",
       "slurmstepd: error: *** STEP 88002.0 ON nid001501 FAILED (non-zero exit code or other "
       "failure mode) ***\n",
       {},
       {"nid001501"},
       {}},
      {"memory",
       "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=14604001.0 cgroup. Some of your "
       "processes may have been killed by the cgroup out-of-memory handler.\n"
       "srun: error: o0616x: task 0: Out Of Memory\n",
       {},
       {},
       {Kind::oom}},
      {"a memory warning of a job that succeeded",
       "alignment finished\n"
       "slurmstepd: error: Exceeded step memory limit at some point. Step may have been partially "
       "swapped out to disk.\n",
       {},
       {},
       {}},
      {"a launch refused for a name that does not resolve",
       "srun: Required node not available (down, drained or reserved)\n"
       "srun: error: fwd_tree_thread: can't find address for host ip-192-0-2-221, check "
       "slurm.conf\n"
       "srun: error: Task launch for 6.0 failed on node ip-192-0-2-221: Can't find an address, "
       "check "
       "slurm.conf\n"
       "srun: error: Application launch failed: Can't find an address, check slurm.conf\n",
       {},
       {},
       {Kind::env_fault}},
      {"a step that had to wait and then ran",
       "srun: Job 23547002 step creation temporarily disabled, retrying (Requested nodes are "
       "busy)\n"
       "srun: Job 23547002 step creation still disabled, retrying (Requested nodes are busy)\n"
       "srun: Step created for StepId=23547002.1\ndone\n",
       {},
       {},
       {}},
      {"a request that the job cannot serve",
       "srun: error: Unable to create step for job 88123: Requested node configuration is not "
       "available\n",
       {},
       {},
       {Kind::env_fault}},
      {"a GPU that slurmstepd lost",
       "epoch 3 step 1200 loss 0.41\n"
       "slurmstepd: error: NVML: Failed to get usage(15): GPU is lost\n",
       {},
       {},
       {Kind::gpu_fault}},
      {"labelled output of a hang that the time limit ended",
       "47: WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\n"
       "47:   Local host: h25c91\n"
       "32: [h15c90][[45553,0],32][btl_tcp.c:559:mca_btl_tcp_recv_blocking] recv(161) failed: "
       "Connection reset by peer (104)\n"
       " 0: slurmstepd: error: *** STEP 5811001.0 ON h15c90 CANCELLED AT 2031-04-09T10:32:42 DUE "
       "TO "
       "TIME LIMIT ***\n",
       {},
       {"h15c90", "h25c91"},
       {Kind::walltime}},
  };
  return all;
}

bool holds(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

TEST(SlurmLogs, OnlyTheGuiltyAreCalledLost) {
  for (const Log& log : logs()) {
    SCOPED_TRACE(log.name);
    Stream stream(test_grammar());
    stream.feed(log.text);
    stream.finish();
    std::vector<std::string> lost;
    for (const Fact& fact : stream.facts()) {
      if (fact.event == Event::node_lost) lost.push_back(fact.host);
    }
    EXPECT_EQ(lost, log.lost);
  }
}

TEST(SlurmLogs, NoCauseNamesAnInnocentHost) {
  for (const Log& log : logs()) {
    SCOPED_TRACE(log.name);
    Stream stream(test_grammar());
    stream.feed(log.text);
    stream.finish();
    for (const Fact& fact : stream.facts()) {
      if (fact.role == Role::cause) {
        EXPECT_FALSE(holds(log.unnamed, fact.host)) << fact.text;
      }
      if (fact.event == Event::limit || fact.event == Event::teardown) {
        EXPECT_EQ(fact.host, "") << fact.text;
      }
    }
  }
}

TEST(SlurmLogs, TheCauseIsAmongTheFactsAndNothingElseIs) {
  for (const Log& log : logs()) {
    SCOPED_TRACE(log.name);
    Stream stream(test_grammar());
    stream.feed(log.text);
    stream.finish();
    for (const Kind kind : log.causes) {
      EXPECT_TRUE(std::any_of(stream.facts().begin(), stream.facts().end(), [&](const Fact& fact) {
        return fact.role == Role::cause && fact.kind == kind;
      })) << to_string(kind);
    }
    if (!log.causes.empty()) continue;
    for (const Fact& fact : stream.facts()) EXPECT_NE(fact.role, Role::cause) << fact.text;
  }
}

}  // namespace
}  // namespace ezpz::evidence
