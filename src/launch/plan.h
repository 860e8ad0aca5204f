// From "what to run where" to one process to start. Pure; every launcher has this shape and is one
// process whose end is the attempt's end.
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/node.h"
#include "base/process.h"
#include "base/result.h"
#include "site/scheduler.h"

namespace ezpz::launch {

struct Request {
  Argv command;
  Argv launcher_flags;  // the user's own; ours of the same meaning are then left out. Those that
                        // choose hosts are refused: they would undo a swap
  std::vector<Node> hosts;  // active, in the order of the hostfile
  // The job's hosts in the scheduler's order, retired ones included: SLURM numbers ranks in this
  // order whatever the hostfile says. Empty: unknown, the hostfile's order is assumed.
  std::vector<Node> allocation;
  int ranks = 0;
  int ranks_per_node = 0;      // most ranks on any one node
  std::string hostfile_path;   // holds the active hosts; empty: they go on the command line
  std::vector<Node> excluded;  // retired: never to be used, if still in the allocation
  int gpus_per_node = 0;       // 0: none, or let the launcher decide
  int cpus_per_rank = 0;       // 0: unknown
  bool rank_env = true;        // start the command through `ezpz rank`
  bool kill_on_bad_exit = true;
  bool overlap = false;        // past a stale step that still holds the hosts
  bool heterogeneous = false;  // a heterogeneous job: refused
  std::string self_path;       // absolute path of ezpz, as the nodes see it
  std::string attempt_id;      // "57520568.1a2b.2": in every rank's environment
  int attempt = 1;
  int master_port = 0;
  EnvChanges user_env;
  std::string job_id;

  // For the launchers that are called mpiexec.
  std::string program;                 // its path; empty: the usual name, from PATH
  bool intel_mpi = false;              // Hydra as Intel ships it
  bool as_root = false;                // Open MPI refuses to start for root unless told
  bool label = false;                  // PALS: host and rank before every line
  std::string cpu_bind;                // in the launcher's own words; empty: its default
  std::vector<std::string> inherited;  // names of variables of ours that ranks are to have
};

// How a signal for the ranks travels.
enum class SignalRoute {
  process,  // to the launcher, which passes it on
  scancel,  // to the step, through SLURM: srun itself would turn SIGTERM into SIGKILL
  command,  // SIGTERM by signal_command, all others as `process`: mpirun makes a kill of SIGTERM
};

// A file the launcher reads, to be there before it starts.
struct PlanFile {
  std::string path;
  std::string text;
};

struct Plan {
  std::string launcher;  // "srun"
  Argv argv;
  EnvChanges env;
  std::vector<std::string> host_order;      // spellings, in the order ranks fill them
  std::map<int, std::string> host_of_rank;  // spellings; empty when user flags decide placement
  std::string master_addr;                  // host of rank 0
  int master_port = 0;
  SignalRoute signals = SignalRoute::process;
  Argv signal_command;        // asks all ranks of the attempt to stop (SIGTERM)
  int hard_signal = SIGTERM;  // what, sent to the launcher, ends ranks that ignore SIGTERM
  std::vector<PlanFile> files;
  // Its own exit code is a rank's, it says nothing more when a rank exits with an error, and lets
  // the other ranks run on.
  bool silent_exit = false;
};

struct Launcher {
  std::string_view name;
  Result<Plan> (*plan)(const Request&);
  // Names it goes by in PATH. Several launchers are called mpiexec: launch/mpi_program.h asks the
  // binary which one it is. Empty: nothing to look for.
  std::vector<std::string> programs;
};
const std::vector<Launcher>& launchers();
const Launcher* find_launcher(std::string_view name);  // null: there is none of that name

struct LauncherWish {
  std::string asked = "auto";                           // --launcher
  site::SchedulerKind job = site::SchedulerKind::none;  // of the job this runs in
  std::string suggestion = {};                          // the machine table's, may be empty
  bool has_hostfile = false;                            // --hostfile was given
  bool has_ssh = false;                                 // there is a client in PATH
  std::function<const Launcher*()> installed = {};      // what mpiexec here is; null: none
};
Result<const Launcher*> choose_launcher(const LauncherWish&);

Result<Plan> plan_srun(const Request&);
// Hydra (MPICH, Intel MPI), Open MPI 4 and 5 (and PRRTE alone), HPE Cray PALS.
Result<Plan> plan_hydra(const Request&);
Result<Plan> plan_openmpi(const Request&);
Result<Plan> plan_pals(const Request&);
// `EZPZ ssh-run --hosts=A,B --ranks=N ... --env=NAMES --ssh=WORD... -- CMD`: as local-run;
// variables by name, and the words of each ssh before its host.
Result<Plan> plan_ssh(const Request&);
// `EZPZ local-run --hosts=A,B --ranks=N --ranks-per-node=P --attempt=K [--master-port=M]
// [--kill-on-bad-exit] -- CMD`: hosts in rank order, ranks laid out by ranks_on_hosts() (counts.h).
Result<Plan> plan_local(const Request&);

// Variables of a job that change what an srun inside it means: what the job asked for is not what a
// step asks for. plan_srun() unsets them; so must whoever runs srun for another purpose.
std::vector<std::string> srun_job_variables();

// Sends a signal to the ranks of a step; only for plans with SignalRoute::scancel.
Argv signal_argv(int signal, const std::string& step_id);
Argv cancel_argv(const std::string& step_id);
// Did a scancel that failed with these words reach the ranks all the same? In a job with a node
// that the step does not use, Slurm 22.05 signals the step's ranks and then says "Invalid job id
// specified" and 225 for that node (tests/cluster/SEEN.md). It says the same of a step that is
// over.
bool signalled_in_spite_of(std::string_view trouble);

// A command once on each of these hosts, beside the attempt, through its launcher: one process
// whose environment needs no change. The user's own variables are not for it.
Result<Argv> beside_argv(Result<Plan> (*plan)(const Request&), const Request&,
                         const std::vector<Node>& hosts, const Argv& command);

// hosts sorted as SLURM will number ranks over them: by position in the allocation; hosts that are
// not in it (or all, when it is empty) keep their order behind the others.
std::vector<Node> slurm_node_order(const std::vector<Node>& hosts,
                                   const std::vector<Node>& allocation);

// What --dry-run prints: the exact command and the environment changes, secrets masked.
std::string render(const Plan&);
bool looks_secret(std::string_view variable_name);
// The values of flags such as --api-key=V, --hf_token V and --password V become "***": a record is
// read by more people than a command line. --tokenizer and --max-tokens are no secrets.
Argv mask_secrets(const Argv& argv);

}  // namespace ezpz::launch
