// Whole logs of launchers other than srun, shaped like those of real failures: who is said to have
// died, and that no reporter, parent or head node is ever taken for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "evidence/stream.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

struct Log {
  const char* name;
  const char* text;
  // Of the facts with role cause, in order: "EVENT KIND [host] [ranks] [signal S|code C]".
  std::vector<std::string> causes;
};

const std::vector<Log>& logs() {
  static const std::vector<Log> all{
      {"PALS: a node's daemon was killed, and the others were ended",
       "step    1  rate 70.2  mem 233.0\n"
       "x4217c0s6b0n0.hsn.cm.site.example: shepherd died from signal 9\n"
       "x4215c5s4b0n0.hsn.cm.site.example: rank 12 died from signal 15\n",
       {"node_lost node_failure x4217c0s6b0n0.hsn.cm.site.example signal 9"}},
      {"PALS: PBS ended the job and with it the daemons of all nodes",
       "=>> PBS: job killed: walltime 21631 exceeded limit 21600\n"
       "x4217c0s6b0n0.hsn.cm.site.example: shepherd died from signal 9\n"
       "x4215c5s4b0n0.hsn.cm.site.example: shepherd died from signal 9\n",
       {"limit walltime"}},
      {"PALS: the child in the launch tree is sick, not the parent that says so",
       "ping failed on x4304c1s6b0n0: No reply from x4307c2s6b0n0.hostmgmt2307.cm.site.example "
       "after 97s\n"
       "launch failed on x4304c1s6b0n0: Couldn't forward RPC launch(24c93b8c-0000) to child "
       "x4307c2s6b0n0.hostmgmt2307.cm.site.example: Resource temporarily unavailable\n",
       {"node_lost node_failure x4307c2s6b0n0.hostmgmt2307.cm.site.example",
        "node_lost node_failure x4307c2s6b0n0.hostmgmt2307.cm.site.example"}},
      {"PALS: two messages without a line's end between them",
       "x3009c0s13b0n0.hsn.cm.site.example: rank 0 died from signal 7 and dumped "
       "corex3009c0s13b0n0.hsn.cm.site.example: rank 3 died from signal 15\n"
       "nid001: rank 8 died from signal 7 and dumped corenid002: rank 9 died from signal 6\n",
       {"death unknown x3009c0s13b0n0.hsn.cm.site.example 0 signal 7",
        "death unknown nid001 8 signal 7", "death unknown nid002 9 signal 6"}},
      {"Hydra: the host stands a line before the code, and others print in between",
       "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
       "=   PID 4019 RUNNING AT mpix-2x\n"
       "step 31 loss 2.0\n"
       "=   EXIT CODE: 139\n"
       "=   CLEANING UP REMAINING PROCESSES\n"
       "[proxy:0:0@mpix-1x] HYD_pmcd_pmip_control_cmd_cb (pm/pmiserv/pmip_cb.c:885): assert "
       "(!closed) failed\n"
       "[mpiexec@mpix-hnx] HYDT_bscu_wait_for_completion (tools/bootstrap/utils/bscu_wait.c:76): "
       "one of the processes terminated badly; aborting\n",
       {"death app_error mpix-2x code 139"}},
      {"Hydra: 9 is a signal and 3 is an exit code; without the first line there is no host",
       "=   EXIT CODE: 9\n"
       "=   PID 7 RUNNING AT nid000002\n=   EXIT CODE: 3\n",
       {"death unknown signal 9", "death app_error nid000002 code 3"}},
      {"Intel MPI: SIGKILL is the clean-up of the survivors",
       "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
       "=   RANK 0 PID 31670 RUNNING AT n1\n=   KILLED BY SIGNAL: 9 (Killed)\n"
       "=   RANK 1 PID 31671 RUNNING AT n2\n=   KILLED BY SIGNAL: 11 (Segmentation fault)\n"
       "=   RANK 2 PID 31672 RUNNING AT n3\n=   KILLED BY SIGNAL: 9 (Killed)\n",
       {"death unknown n2 1 signal 11"}},
      {"Open MPI: rank and code stand on two lines, and there is no host",
       "  Process name: [[14065,1],2]\n"
       "  Exit code:    3\n"
       "  Exit code:    4\n",
       {"death app_error 2 code 3"}},
      {"Open MPI: the remote daemon is out of reach, its own node is none of it",
       "ORTE has lost communication with a remote daemon.\n\n"
       "  HNP daemon   : [[16919,0],0] on node anode031x\n"
       "  Remote daemon: [[16919,0],3] on node anode127x\n",
       {"message launcher_fault", "lost_of_several launcher_fault anode127x"}},
      {"Open MPI before 3, under Grid Engine",
       "error: commlib error: got read error (closing \"ip-192-0-2-17.internal/shepherd_ijs/1\")\n"
       " ORTE has lost communication with its daemon located on node:\n\n"
       "   hostname:  ip-192-0-2-17.internal\n\n"
       "   hostname:  ip-192-0-2-99.internal\n",
       {"unreachable node_failure ip-192-0-2-17.internal",
        "unreachable launcher_fault ip-192-0-2-17.internal"}},
      {"a host's name in a program's own output is no daemon's",
       "hostname:  nid001306\nExit code:    0\nProcess name: trainer\nExit code:    5\n",
       {}},
      {"MVAPICH: the spawner beside the rank knows how it died",
       "[n1.x:mpispawn_0][readline] Unexpected End-Of-File on file descriptor 6. MPI process "
       "died?\n"
       "[n1.x:mpispawn_0][child_handler] MPI process (rank: 3, pid: 1) terminated with signal 11 "
       "-> "
       "abort job\n"
       "[login1:mpirun_rsh][process_mpispawn_connection] mpispawn_0 from node n1 aborted: MPI "
       "process error (1)\n",
       {"death unknown n1.x 3 signal 11"}},
      {"Flux: the node went first, the rank that left because of it is elsewhere",
       "3121.441s: job.exception type=node-failure severity=2 node failure on elc2207 (shell rank "
       "3)\n"
       "3151.502s: flux-shell[0]: FATAL: doom: rank 12 on host elc2204 exited and "
       "exit-timeout=30s has expired\n",
       {"node_lost node_failure elc2207", "message app_error 12"}},
      {"Flux: a broker's log after a normal end",
       "hello from 331\n"
       "2031-03-02T22:58:32.318422Z broker.err[0]: DROP downstream request topic log.append from "
       "3d5b6f15: message from lost child fluk7x (rank 1)\n"
       "Oct 25 06:12:40 tuo1x flux[360]: broker.err[0]: dead to Flux: tuo17x (rank 1)\n",
       {}},
      {"LSF: the report of a job that went well, and of one that hit its limit",
       "Subject: Job 118722: <train.lsf> in cluster <c1> Done\nSuccessfully completed.\n"
       "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.\n",
       {"limit walltime"}},
      {"PBS: a sister is out of reach; the deletion by root is only how Moab ends a job",
       "=>> PBS: job killed: node 18 (n314) requested job terminate, 'EOF' (code 1099) - received "
       "SISTER_EOF attempting to communicate with sister MOM's\n"
       "Job deleted at request of root@sched-ib0\n"
       "MOAB_INFO:  job exceeded wallclock limit\n",
       {"unreachable node_failure n314", "limit walltime"}},
      {"MPICH: what a rank prints while its step is being ended blames nobody",
       "MPICH ERROR [Rank 11122] [job id 41.0] [Thu Aug 14 08:27:11 2031] [nid006700x] - "
       "Abort(2695311) (rank 11122 in comm 0): Fatal error in PMPI_Allreduce: Other MPI error, "
       "error stack:\n"
       "MPIDI_OFI_handle_cq_error(1075)......: OFI poll failed "
       "(ofi_events.c:1077:MPIDI_OFI_handle_cq_error:Input/output error - CANCELED)\n",
       {"message unknown"}},
      {"noise of runs that went well",
       "PMIX ERROR: PMIX_ERR_NOT_FOUND in file dstore_base.c at line 1567\n"
       "[n1:4711] [[9877,0],0] ORTE_ERROR_LOG: Not found in file plm_base.c at line 99\n"
       "srun: Job 23 step creation temporarily disabled, retrying (Requested nodes are busy)\n"
       "srun: error: mpi/pmi2: failed to send temp kvs, rc=1001, retrying\n"
       "slurmstepd: error: couldn't chdir to `/home/me': No such file or directory: going to /tmp "
       "instead\n"
       "libfabric:16642:1701636928::cxi:core:cxip_cq_eq_progress():531<warn> x4104c1s3b0n0: "
       "Cassini Event Queue overflow detected.\n"
       "[0] MPI startup(): libfabric provider: mlx\n",
       {}},
  };
  return all;
}

std::string shown(const Fact& fact) {
  std::string text{to_string(fact.event)};
  text += " " + std::string(to_string(fact.kind));
  if (!fact.host.empty()) text += " " + fact.host;
  if (!fact.ranks.empty()) text += " " + ranges(fact.ranks);
  if (fact.signal != 0) text += " signal " + std::to_string(fact.signal);
  if (fact.code >= 0) text += " code " + std::to_string(fact.code);
  return text;
}

TEST(LauncherLogs, TheCausesAreTheseAndNoOthers) {
  for (const Log& log : logs()) {
    SCOPED_TRACE(log.name);
    Stream stream(test_grammar());
    stream.feed(log.text);
    stream.finish();
    std::vector<std::string> causes;
    for (const Fact& fact : stream.facts()) {
      if (fact.role == Role::cause) causes.push_back(shown(fact));
    }
    EXPECT_EQ(causes, log.causes);
  }
}

}  // namespace
}  // namespace ezpz::evidence
