#include "app/launch_options.h"

#include <stdlib.h>

#include <algorithm>

#include "app/shared_words.h"
#include "base/text.h"

namespace ezpz::app {
namespace {

Status add_variable(LaunchOptions& options, std::string_view text) {
  const Result<Variable> variable = parse_variable(text);
  if (!variable) return variable.error();
  if (variable->value) {
    options.env[variable->name] = variable->value;
  } else if (getenv(variable->name.c_str()) == nullptr) {
    return Error{"not set here: " + variable->name, "--env", "export it, or give NAME=VALUE"};
  } else {
    options.inherit.push_back(variable->name);
  }
  return success();
}

}  // namespace

FlagTable launch_flags(LaunchOptions& o) {
  FlagTable table(
      "ezpz launch [flags] [-- launcher flags] -- CMD ...",
      "Starts CMD as ranks over hosts with the launcher that fits here (srun inside a SLURM job, "
      "the "
      "site's mpiexec inside a PBS job or for the hosts of a file, this machine otherwise). Ranks "
      "get RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, "
      "NODE_RANK, MASTER_ADDR and MASTER_PORT. With --auto-retry it keeps spare hosts aside, and "
      "when an attempt dies says what died and where, swaps the sick host for a spare and starts "
      "again.");
  table.section("What and where");
  table.add_int({"-n", "-np", "--nproc"}, "N", "Ranks in all.", 1, &o.ranks);
  table.add_int({"-ppn", "--ppn", "--nproc-per-node"}, "N",
                "Ranks on each host. Default: one a GPU, or one.", 1, &o.ranks_per_node);
  table.add_int({"-nh", "--nhosts", "--nnodes"}, "N",
                "Hosts that run ranks. With --auto-retry this (or -n with --ppn) splits the "
                "allocation: the rest are spares.",
                1, &o.hosts);
  table.add_string({"--hostfile"}, "FILE",
                   "Hosts, one a line; only these are ever used. Default: the job's own.",
                   &o.hostfile);
  table.add_list({"--exclude"}, "H,...", "Hosts never to use.", &o.exclude);
  table.add_choice(
      {"--launcher"},
      "How ranks are started: hydra is MPICH's or Intel's mpiexec, pals HPE Cray's, ssh needs no "
      "MPI. auto: srun inside a SLURM job; inside a PBS job, and for a hostfile, the machine's own "
      "or the mpiexec that is installed; for a hostfile without one, ssh; else local.",
      {"auto", "srun", "pals", "hydra", "openmpi", "ssh", "local"}, &o.launcher);
  table.add_string({"--machine"}, "NAME", "Take this machine's table instead of detecting one.",
                   &o.machine);
  table.add_string({"--machines-dir"}, "DIR", "Machine tables that replace or add to the built-in.",
                   &o.machines_dir);
  table.add_int({"--gpus-per-node"}, "N",
                "GPUs to ask the launcher for on each host; 0 for none. Default: what the job has.",
                0, &o.gpus_per_node);
  table.add(
      {{"-x", "--env"},
       "NAME[=VALUE]",
       "Set a variable for the ranks, or hand on one that is exported here; may be given "
       "again. Under hydra, openmpi and ssh only what programs are usually tuned with goes along "
       "by itself (PATH, PYTHON*, NCCL_*, OMP_*, HF_*, ...), under the others everything.",
       [&o](std::string_view text) { return add_variable(o, text); }});
  table.add_string({"--cpu-bind"}, "HOW",
                   "Handed to the launcher (--cpu-bind of srun and PALS, -bind-to of Hydra, "
                   "--bind-to of Open MPI). Default: the machine's, if it has one.",
                   &o.cpu_bind);
  table.add_switch({"--no-rank-env"},
                   "Start CMD itself, without `ezpz rank` before it: ranks then see only what the "
                   "launcher sets.",
                   &o.no_rank_env);
  table.add_switch({"--dry-run"}, "Print the exact command and environment; run nothing.",
                   &o.dry_run);
  table.add_switch({"--json"}, "With --dry-run: for programs.", &o.as_json);

  table.section("Watching");
  table.add_seconds(
      {"--timeout"}, "S",
      "End an attempt that prints nothing for so long (30m with --auto-retry, never "
      "without); 0 for never. Under hydra, which lets ranks wait for one that failed, a "
      "sixth of it is enough after an error.",
      &o.idle_timeout_s);
  table.add_seconds({"--first-step-timeout"}, "S",
                    "The same for a job that falls silent so soon after its start and has made no "
                    "step (10m with --auto-retry, never without); 0 for no such limit.",
                    &o.first_step_timeout_s);
  table.add_optional({"--require-net"}, "NAME",
                     "End an attempt (env_fault, no spare is spent) as soon as its ranks say that "
                     "NCCL or RCCL uses another network than this, such as Socket instead of "
                     "\"AWS Libfabric\". Without it a fallback is told, and the job runs on.",
                     &o.require_net);
  table.add_seconds(
      {"--grace"}, "S",
      "Between asking ranks to stop (SIGTERM, time for a checkpoint) and ending them. "
      "Default 30.",
      &o.grace_s);

  table.section("When it dies");
  table.add_switch({"--auto-retry"}, "Fail over: swap sick hosts for spares and relaunch.",
                   &o.auto_retry);
  table.add_string({"--spare-nodes"}, "auto|N",
                   "Hosts to keep as spares. auto: all that are not active.", &o.spare_nodes);
  table.add_int({"--max-failover-retries"}, "N", "Relaunches at most. Default 10.", 0,
                &o.max_failover_retries);
  table.add_int(
      {"--retries"}, "N",
      "Without --auto-retry: start again on the same hosts up to N times after a failure.", 0,
      &o.retries);
  table.add_choice({"--blind"},
                   "May a host be swapped on a guess, when a fault keeps coming and no evidence "
                   "names one? Such a host is benched and the record says so.",
                   {"never", "last-resort", "always"}, &o.blind);
  table.add_int({"--min-nodes"}, "N",
                "When spares run out, go on with fewer hosts, down to N. Default: do not.", 1,
                &o.min_nodes);
  table.add_optional({"--log-dir"}, "DIR",
                     "Where failover-<jobid>/ is kept: each attempt's output, the journal, who was "
                     "retired. Default: logs.",
                     &o.log_dir);
  table.add_string({"--patterns-dir"}, "DIR",
                   "Failure patterns that replace or add to the built-in.", &o.patterns_dir);
  table.add_switch({"-q", "--quiet"}, "Of ezpz's own lines only warnings and errors.", &o.quiet);
  table.epilogue(
      "Signals: SIGINT, SIGTERM and SIGHUP stop the ranks in order, a second one at once. SIGUSR1\n"
      "and SIGUSR2 are passed on to the ranks.\n"
      "Exit: the job's own code; 130 after Ctrl-C, 143 after SIGTERM; 2 for bad usage.\n\n"
      "Examples\n"
      "  ezpz launch -n 4 -- python3 train.py\n"
      "  ezpz launch --auto-retry --nhosts 30 --ppn 4 -- python3 train.py   (32 hosts: 2 spares)\n"
      "  ezpz launch --dry-run --ppn 4 -- --cpu-bind=cores -- ./a.out       (flags for srun)\n"
      "  ezpz launch --launcher ssh --hostfile hosts.txt -- -F ssh_config -- ./a.out   (for ssh)");
  return table;
}

Result<LaunchOptions> parse_launch_options(const std::vector<std::string>& words) {
  LaunchOptions options;
  const FlagTable table = launch_flags(options);
  bool after_dashes = false;
  const Result<std::vector<std::string>> parsed = table.parse(words, &after_dashes);
  if (!parsed) return parsed.error();
  Argv rest = *parsed;
  options.launcher_flags = take_foreign_flags(rest, after_dashes);
  options.command = std::move(rest);
  if (options.command.empty()) {
    return Error{"no command given", "", "ezpz launch [flags] -- CMD ..."};
  }
  if (options.command[0].empty()) return Error{"the command's name is empty", "", ""};
  if (options.auto_retry && options.retries) {
    return Error{"--retries and --auto-retry exclude each other", "",
                 "--max-failover-retries bounds the relaunches of --auto-retry"};
  }
  if (!options.auto_retry) {
    const std::pair<const char*, bool> failover_only[] = {
        {"--spare-nodes", options.spare_nodes != "auto"},
        {"--max-failover-retries", options.max_failover_retries.has_value()},
        {"--min-nodes", options.min_nodes.has_value()},
        {"--blind", options.blind != "last-resort"},
    };
    for (const auto& [name, given] : failover_only) {
      if (given) return Error{"only means something with --auto-retry", name, ""};
    }
  }
  if (options.spare_nodes != "auto") {
    const auto count = parse_int(options.spare_nodes);
    if (!count || *count < 0) {
      return Error{"neither auto nor a number: " + options.spare_nodes, "--spare-nodes", ""};
    }
  }
  if (options.as_json && !options.dry_run) {
    return Error{"only means something with --dry-run", "--json", ""};
  }
  if (options.require_net && trim(*options.require_net).empty()) {
    return Error{"an empty value means nothing here", "--require-net", "give a network's name"};
  }
  if (options.log_dir && options.log_dir->empty()) {
    return Error{"an empty value means nothing here", "--log-dir", ""};
  }
  return options;
}

}  // namespace ezpz::app
