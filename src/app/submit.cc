// `ezpz submit`: writes the batch script of a job that outlives its nodes, and submits it.
#include <fmt/core.h>
#include <sys/stat.h>
#include <time.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/shared_words.h"
#include "app/site_view.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/plan.h"
#include "submit/job_script.h"

namespace ezpz::app {
namespace {

constexpr double kSubmitPatience_s = 60;
constexpr double kSignalBeforeEnd_s = 120;

struct SubmitOptions {
  std::optional<long> nodes;
  std::optional<long> spares;
  std::optional<long> ranks_per_node;
  std::optional<long> gpus_per_node;
  std::optional<std::string> time;
  std::optional<std::string> queue;
  std::optional<std::string> partition;
  std::optional<std::string> account;
  std::optional<std::string> job_name;
  std::optional<std::string> constraint;
  std::optional<std::string> filesystems;
  std::optional<std::string> venv;
  std::optional<std::string> require_net;
  std::optional<std::string> log_dir;
  std::vector<std::string> modules;
  EnvChanges env;
  double signal_before_end_s = kSignalBeforeEnd_s;
  std::string scheduler = "auto";
  std::string machine;
  std::string machines_dir;
  bool dry_run = false;
  bool as_json = false;
};

Status set_variable(EnvChanges& env, std::string_view text) {
  const Result<Variable> variable = parse_variable(text);
  if (!variable) return variable.error();
  if (!variable->value) {
    return Error{"no value for " + variable->name, "--env", "NAME=VALUE; NAME= is an empty value"};
  }
  env[variable->name] = variable->value;
  return success();
}

FlagTable submit_flags(SubmitOptions& o) {
  FlagTable table(
      "ezpz submit [flags] [-- scheduler flags] -- CMD ...",
      "Writes a batch script (for sbatch or qsub) that runs CMD by `ezpz launch --auto-retry`, "
      "submits it and prints the job's id. The job outlives lost nodes (--no-kill, or "
      "tolerate_node_failures=all) and prints what it resolved to. The script stays in the log "
      "directory.");
  table.section("The job");
  table.add_int({"-N", "--nodes"}, "N", "Nodes in all, spares included. Default 1.", 1, &o.nodes);
  table.add_int({"--spares"}, "N", "How many of them are kept as spares. Default 0.", 0, &o.spares);
  table.add_optional({"-t", "--time"}, "TIME",
                     "Time limit: 90m, 12h, 2d, HH:MM:SS or D-HH:MM:SS. A bare number is refused: "
                     "SLURM takes it for minutes, PBS for seconds.",
                     &o.time);
  table.add_optional({"-q", "--queue"}, "QUEUE", "PBS's queue; SLURM's quality of service.",
                     &o.queue);
  table.add_optional({"-p", "--partition"}, "NAME", "SLURM's partition.", &o.partition);
  table.add_optional({"-A", "--account"}, "NAME", "Who pays.", &o.account);
  table.add_optional({"--job-name"}, "NAME", "Default: the script's or program's name.",
                     &o.job_name);
  table.add_optional({"--constraint"}, "WHAT",
                     "SLURM: what nodes must have. Default: as the machine's table says.",
                     &o.constraint);
  table.add_optional({"--filesystems"}, "A:B",
                     "PBS: file systems the job needs. Default: as the machine's table says.",
                     &o.filesystems);
  table.add_int({"--gpus-per-node"}, "N",
                "GPUs to ask for on each node; 0 for none. Default: under SLURM the machine's.", 0,
                &o.gpus_per_node);
  table.add_seconds({"--signal-before-end"}, "S",
                    "SLURM: SIGUSR1 so long before the end, which ezpz passes on to the ranks; "
                    "a program that does not expect it dies of it then. 0 for none. Default 120.",
                    &o.signal_before_end_s);
  table.section("What runs in it");
  table.add_int({"-ppn", "--ppn", "--nproc-per-node"}, "N", "Ranks on each node.", 1,
                &o.ranks_per_node);
  table.add_list({"--module"}, "M,...", "Modules to load, in this order; may be given again.",
                 &o.modules);
  table.add_optional({"--require-net"}, "NAME",
                     "Handed on to `ezpz launch`: stop when NCCL uses another network.",
                     &o.require_net);
  table.add_optional({"--venv"}, "DIR", "Python environment to activate.", &o.venv);
  table.add({{"-x", "--env"},
             "NAME=VALUE",
             "Export a variable; may be given again. NAME= exports an empty one.",
             [&o](std::string_view text) { return set_variable(o.env, text); }});
  table.section("How");
  table.add_choice({"--scheduler"}, "Default: the one that is found here.",
                   {"auto", "slurm", "pbs"}, &o.scheduler);
  table.add_string({"--machine"}, "NAME", "Take this machine's table.", &o.machine);
  table.add_string({"--machines-dir"}, "DIR", "Machine tables that replace or add to the built-in.",
                   &o.machines_dir);
  table.add_optional({"--log-dir"}, "DIR",
                     "Where the script, the scheduler's output and ezpz's records are kept. "
                     "Default: logs.",
                     &o.log_dir);
  table.add_switch({"--dry-run"}, "Print the script and the command; submit nothing.", &o.dry_run);
  table.add_switch({"--json"}, "For programs.", &o.as_json);
  table.epilogue(
      "A CMD that is an `ezpz launch ...` itself is run as it is.\n\n"
      "Examples\n"
      "  ezpz submit -N 34 --spares 2 -t 12h -A m1234 -q regular --ppn 4 -- python3 train.py\n"
      "  ezpz submit -N 2 -t 30m -q debug -- --reservation=tuesday -- python3 train.py");
  return table;
}

// "Given and empty" is a mistake of some script above us, not a wish for the default.
Status refuse_empty(const SubmitOptions& o) {
  const std::pair<const char*, const std::optional<std::string>*> texts[] = {
      {"--time", &o.time},           {"--queue", &o.queue},
      {"--partition", &o.partition}, {"--account", &o.account},
      {"--job-name", &o.job_name},   {"--constraint", &o.constraint},
      {"--venv", &o.venv},           {"--filesystems", &o.filesystems},
      {"--log-dir", &o.log_dir},     {"--require-net", &o.require_net},
  };
  for (const auto& [name, text] : texts) {
    if (*text && (*text)->empty()) {
      return Error{"an empty value means nothing here", name, "leave the flag out for the default"};
    }
  }
  return success();
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

Result<submit::JobRequest> request_of(const SubmitOptions& o, const site::Machine& machine,
                                      bool slurm, Argv scheduler_flags, Argv command) {
  submit::JobRequest job;
  job.nodes = static_cast<int>(o.nodes.value_or(1));
  job.spares = static_cast<int>(o.spares.value_or(0));
  if (o.ranks_per_node) job.ranks_per_node = static_cast<int>(*o.ranks_per_node);
  if (o.time) {
    job.time_s = submit::parse_time(*o.time);
    if (!job.time_s) {
      return Error{"not a time limit: " + printable(*o.time, 40), "--time",
                   "90m, 12h, 2d, HH:MM:SS or D-HH:MM:SS"};
    }
  }
  job.name = o.job_name.value_or(submit::default_name(command));
  job.queue = o.queue.value_or("");
  job.partition = o.partition.value_or("");
  job.account = o.account.value_or("");
  job.constraint = o.constraint.value_or(slurm ? machine.slurm_constraint : "");
  job.filesystems = o.filesystems.value_or(slurm ? "" : machine.pbs_filesystems);
  job.select = machine.pbs_select;
  if (!machine.pbs_place.empty()) job.place = machine.pbs_place;
  if (o.gpus_per_node) {
    job.gpus_per_node = static_cast<int>(*o.gpus_per_node);
  } else if (slurm && machine.gpus_per_node > 0) {
    job.gpus_per_node = machine.gpus_per_node;
  }
  job.signal_before_end_s = o.signal_before_end_s;
  job.modules = o.modules;
  job.require_net = o.require_net.value_or("");
  if (o.venv) job.venv = absolute(*o.venv);
  job.env = o.env;
  job.scheduler_flags = std::move(scheduler_flags);
  job.working_dir = absolute(".");
  if (job.working_dir.size() > 1 && job.working_dir.back() == '/') job.working_dir.pop_back();
  job.log_dir = absolute(o.log_dir.value_or("logs"));
  if (job.log_dir.size() > 1 && job.log_dir.back() == '/') job.log_dir.pop_back();
  job.self_path = self_path();
  job.command = std::move(command);
  return job;
}

// SLURM or PBS: as asked for, as the machine's table says, or as the programs here tell.
Result<bool> takes_slurm(const SubmitOptions& o, const SiteView& site) {
  if (o.scheduler != "auto") return o.scheduler == "slurm";
  const std::string& named = site.machine.machine.scheduler;
  if (!named.empty()) return named == "slurm";
  switch (site.job.scheduler) {
    case site::SchedulerKind::slurm:
      return true;
    case site::SchedulerKind::pbs:
      return false;
    case site::SchedulerKind::none:
      break;
  }
  return Error{"no scheduler to submit to: neither SLURM's nor PBS's programs are in PATH", "",
               "go to a login node, or say --scheduler slurm|pbs"};
}

std::string script_path(const submit::JobRequest& job, bool slurm) {
  const time_t now = static_cast<time_t>(wall_s());
  struct tm local = {};
  localtime_r(&now, &local);
  char stamp[32] = {};
  strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  std::string name = job.name;
  for (char& c : name) {
    if (c == '/' || c == ' ') c = '_';
  }
  const std::string base = job.log_dir + "/" + name + "." + stamp;
  const char* ending = slurm ? ".sbatch" : ".pbs";
  std::string path = base + ending;
  for (int i = 2; file_exists(path); ++i) path = fmt::format("{}.{}{}", base, i, ending);
  return path;
}

// A script may hold the values of variables: it is its owner's alone.
Status keep_script(const std::string& path, const std::string& log_dir, const std::string& text) {
  if (Status made = make_directories(log_dir); !made) return made;
  const mode_t before = umask(077);
  Status written = write_file_atomically(path, text);
  umask(before);
  return written;
}

}  // namespace

int run_submit(const Words& words) {
  SubmitOptions options;
  const FlagTable table = submit_flags(options);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  bool after_dashes = false;
  const Result<std::vector<std::string>> parsed = table.parse(words, &after_dashes);
  if (!parsed) return usage_error(parsed.error().one_line());
  if (Status full = refuse_empty(options); !full) return usage_error(full.error().one_line());
  Argv command = *parsed;
  Argv scheduler_flags = take_foreign_flags(command, after_dashes);

  Loop loop;
  const Result<SiteView> site =
      look_around(loop, options.machine, options.machines_dir, site::Depth::environment);
  if (!site) return usage_error(site.error().one_line());
  const Result<bool> slurm = takes_slurm(options, *site);
  if (!slurm) return usage_error(slurm.error().one_line());
  const Result<submit::JobRequest> job = request_of(options, site->machine.machine, *slurm,
                                                    std::move(scheduler_flags), std::move(command));
  if (!job) return usage_error(job.error().one_line());
  const Result<submit::JobScript> script =
      *slurm ? submit::write_slurm_script(*job) : submit::write_pbs_script(*job);
  if (!script) return usage_error(script.error().one_line());

  const std::string path = script_path(*job, *slurm);
  Argv argv = script->submit;
  argv.push_back(path);
  Json answer = {{"scheduler", *slurm ? "slurm" : "pbs"},
                 {"machine", site->machine.machine.name},
                 {"script", path},
                 {"argv", argv},
                 {"job_id", nullptr}};
  if (options.dry_run) {
    answer["text"] = script->text;
    log::info("would run: " + printable(shell_join(argv), 4000));
    write_all(1, options.as_json ? dump_pretty(answer) + "\n" : script->text);
    return 0;
  }
  if (Status kept = keep_script(path, job->log_dir, script->text); !kept) {
    return usage_error(kept.error().one_line());
  }
  const HelperResult result = run_helper(loop, argv, kSubmitPatience_s);
  if (!result.usable()) {
    log::error(
        "not submitted: " + result.trouble + " (the script: " + path +
        (result.timed_out ? "; look with squeue or qstat before submitting it again)" : ")"));
    return 1;
  }
  const Result<std::string> id = submit::read_job_id(result.out);
  if (!id) {
    log::error(id.error().one_line());
    return 1;
  }
  answer["job_id"] = *id;
  log::info("submitted; the script: " + path);
  write_all(1, options.as_json ? dump_pretty(answer) + "\n" : *id + "\n");
  return 0;
}

}  // namespace ezpz::app
