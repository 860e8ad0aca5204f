// `ezpz launch`: sets the stage and runs one attempt, a few (--retries), or the failover loop.
#include <fmt/core.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/launch_options.h"
#include "app/launch_setup.h"
#include "app/pattern_notice.h"
#include "app/run_record.h"
#include "app/site_view.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "failover/allocation.h"
#include "failover/job_dir.h"
#include "failover/live_world.h"
#include "failover/loop.h"
#include "failover/record_json.h"
#include "launch/port.h"
#include "verdict/stop_reason.h"

namespace ezpz::app {
namespace {

constexpr double kDefaultIdle_s = 1800;  // legitimate silences of minutes exist
constexpr double kDefaultFirstStep_s = 600;
constexpr double kTerminalPatience_s = 10;  // at the end, for output still on its way
constexpr double kDiskPatience_s = 5;
constexpr double kForever_s = 1e9;
constexpr int kDefaultRelaunches = 10;

struct Stage {
  LaunchOptions options;
  SiteView site;
  LaunchSetup setup;
  std::string job_dir;
};

// What the first attempt would be, but for the number in its id.
int print_dry_run(const Stage& stage) {
  launch::Request request = stage.setup.request;
  request.hosts.assign(stage.setup.pool.begin(),
                       stage.setup.pool.begin() + static_cast<std::ptrdiff_t>(stage.setup.active));
  const bool keeps_record = stage.options.auto_retry || stage.options.log_dir;
  if (keeps_record) {
    request.hostfile_path =
        failover::next_run(stage.options.log_dir.value_or("logs"), stage.setup.job_id) +
        "/active.hostfile";
  }
  request.attempt_id = stage.setup.job_id + ".dry-run.1";
  request.master_port = launch::choose_port(stage.setup.job_id, 1, "dry-run", {});
  const Result<launch::Plan> plan = stage.setup.launcher->plan(request);
  if (!plan) return usage_error(plan.error().one_line());
  if (!stage.options.as_json) {
    write_all(1, launch::render(*plan));
    return 0;
  }
  Json env = Json::object();
  for (const auto& [name, value] : plan->env) {
    if (value) {
      env[name] = launch::looks_secret(name) ? "***" : *value;
    } else {
      env[name] = nullptr;
    }
  }
  Json files = Json::object();
  for (const launch::PlanFile& file : plan->files) files[file.path] = file.text;
  write_all(1, dump_pretty({{"launcher", plan->launcher},
                            {"argv", launch::mask_secrets(plan->argv)},
                            {"env", env},
                            {"files", files},
                            {"hosts", plan->host_order},
                            {"placement", failover::placement_json(plan->host_of_rank)},
                            {"master_addr", plan->master_addr},
                            {"master_port", plan->master_port}}) +
                   "\n");
  return 0;
}

// Ranks may stand elsewhere. Without asking the disk, which may hang.
std::string absolute(const std::string& path) {
  char here[PATH_MAX];
  if (path.empty() || path[0] == '/' || getcwd(here, sizeof here) == nullptr) return path;
  return std::string(here) + "/" + path;
}

failover::LiveSettings live_settings(const Stage& stage) {
  failover::LiveSettings settings;
  settings.launcher = stage.setup.launcher;
  settings.request = stage.setup.request;
  const double idle_s = stage.options.idle_timeout_s;
  settings.supervise.idle_timeout_s =
      idle_s >= 0 ? idle_s : (stage.options.auto_retry ? kDefaultIdle_s : 0);
  const double first_step_s = stage.options.first_step_timeout_s;
  settings.supervise.first_step_timeout_s =
      first_step_s >= 0                                                   ? first_step_s
      : stage.options.auto_retry && settings.supervise.idle_timeout_s > 0 ? kDefaultFirstStep_s
                                                                          : 0;
  settings.network = stage.setup.network.wish;
  settings.network_lines_are_ours = !stage.setup.network.env.empty();
  settings.watch_network = stage.setup.network.watched;
  settings.network_unseen = stage.setup.network.why_unseen;
  settings.nccl_asked = stage.setup.network.nccl_asked;
  settings.supervise.grace_s = stage.options.grace_s;
  settings.scheduler =
      stage.site.job.in_job() ? stage.site.job.scheduler : site::SchedulerKind::none;
  settings.job_id = stage.setup.job_id;
  settings.step_job_ids = {stage.setup.job_id};
  const auto array = site::get(stage.site.env, "SLURM_ARRAY_JOB_ID");
  const auto task = site::get(stage.site.env, "SLURM_ARRAY_TASK_ID");
  if (array && task) settings.step_job_ids.push_back(*array + "_" + *task);
  settings.failover = stage.options.auto_retry;
  settings.planned_end_s = stage.site.job.end_time_s;
  settings.naming = stage.site.machine.machine.naming;
  settings.job_dir = stage.job_dir;
  if (!stage.job_dir.empty()) {
    // Where ranks may leave what belongs to the run: their metrics, say. The user's own word
    // counts.
    settings.request.user_env.emplace("EZPZ_RUN_DIR", absolute(stage.job_dir));
  }
  settings.run_salt = fmt::format("{:x}", static_cast<unsigned long>(getpid()));
  return settings;
}

// A job that does not outlive its nodes dies with the first lost one, whatever ezpz does. PBS has
// told it already; SLURM tells it only in the batch script: that question is asked beside the
// launch and delays nothing.
void warn_of_a_mortal_job(Loop& loop, const Stage& stage) {
  const site::Discovery& job = stage.site.job;
  if (!stage.options.auto_retry || !job.in_job() || job.no_kill.value_or(false)) return;
  const auto warn = [](std::optional<bool> no_kill, const std::string& flag) {
    if (no_kill.value_or(false)) return;
    log::warning((no_kill ? "the job was submitted without "
                          : "it does not show that the job was submitted with ") +
                 flag + ": without it the scheduler ends the job with the first lost node");
  };
  if (job.scheduler == site::SchedulerKind::pbs) {
    warn(job.no_kill, "-W tolerate_node_failures=all");
    return;
  }
  if (job.scheduler != site::SchedulerKind::slurm) return;
  start_helper(loop, site::slurm::batch_script_query(job.job_id), site::query_timeout_s,
               [warn](const HelperResult& result) {
                 std::optional<bool> no_kill;
                 if (result.usable()) no_kill = site::slurm::read_no_kill(result.out);
                 warn(no_kill, "--no-kill");
               });
}

void record_start(failover::LiveWorld& world, const Stage& stage) {
  const LaunchOptions& options = stage.options;
  const std::vector<Node>& pool = stage.setup.pool;
  const auto split = pool.begin() + static_cast<std::ptrdiff_t>(stage.setup.active);
  world.record("start", {{"command", launch::mask_secrets(options.command)},
                         {"launcher", std::string(stage.setup.launcher->name)},
                         {"launcher_flags", options.launcher_flags},
                         {"machine", stage.site.machine.machine.name},
                         {"machine_why", stage.site.machine.why},
                         {"scheduler", std::string(to_string(stage.site.job.scheduler))},
                         {"job_id", stage.setup.job_id},
                         {"active", failover::spellings_json({pool.begin(), split})},
                         {"spare", failover::spellings_json({split, pool.end()})},
                         {"ranks", stage.setup.request.ranks},
                         {"ranks_per_node", stage.setup.request.ranks_per_node},
                         {"auto_retry", options.auto_retry},
                         {"blind", options.blind},
                         {"network_expected", stage.setup.network.wish.expected},
                         {"network_required", stage.setup.network.wish.required},
                         {"network_watch", stage.setup.network.watched
                                               ? stage.setup.network.env.empty()
                                                     ? stage.setup.network.why_unseen
                                                     : "NCCL_DEBUG is set by ezpz; its lines are "
                                                       "in the log only"
                                               : "not watched"},
                         {"end_time_s", stage.site.job.end_time_s ? Json(*stage.site.job.end_time_s)
                                                                  : Json(nullptr)},
                         {"unknown", stage.site.job.trouble},
                         {"host", stage.site.hostname},
                         {"pid", getpid()}});
}

// What the job's end means for the shell. A stop by signal is told as a shell would tell it.
int exit_code(const failover::LiveWorld& world, const Exit& exit, bool success, bool by_guard) {
  if (world.stop_signal() != 0) return 128 + world.stop_signal();
  if (success) return 0;
  if (by_guard) return 1;  // the signal the ranks died of was ours
  const int code = exit.shell_code();
  return code > 0 ? code : 1;  // srun ends with 0 when a node is lost: that is no success
}

// What is still on its way gets the time it needs while it moves. Without a record the terminal is
// the only copy, and a reader may take as long as he likes (as with any program); a signal ends it.
// enough: one came already, when only the output's way was still awaited.
void flush(Loop& loop, failover::Helpers& helpers, bool has_record, bool enough) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    loop.on_signal(signal, [&enough] { enough = true; });
  }
  const auto give_up = [&enough] { return enough; };
  const double patience_s = has_record ? kTerminalPatience_s : kForever_s;
  helpers.terminal.settle_while_moving(patience_s, give_up);
  helpers.disk.settle_while_moving(kDiskPatience_s, give_up);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) loop.forget_signal(signal);
}

int run_auto_retry(failover::LiveWorld& world, Stage& stage) {
  Result<failover::Allocation> allocation =
      failover::Allocation::split(stage.setup.pool, stage.setup.active);
  if (!allocation) return usage_error(allocation.error().one_line());
  failover::LoopSettings settings;
  settings.max_relaunches =
      static_cast<int>(stage.options.max_failover_retries.value_or(kDefaultRelaunches));
  verdict::parse(stage.options.blind, &settings.blind);
  settings.min_active = static_cast<int>(stage.options.min_nodes.value_or(0));
  const failover::LoopResult result = failover::run_failover(world, *allocation, settings);
  world.announce_stop(result.stop_reason);
  return exit_code(world, result.last_exit, result.stop_reason == "success", result.ended_by_guard);
}

// One attempt, or with --retries a few on the same hosts. No host is judged; the verdict is told.
int run_plain(failover::LiveWorld& world, const Stage& stage) {
  failover::AttemptInput input;
  input.active.assign(stage.setup.pool.begin(),
                      stage.setup.pool.begin() + static_cast<std::ptrdiff_t>(stage.setup.active));
  for (const Node& host : input.active) input.hostfile_text += host.spelled + "\n";
  const long attempts = 1 + stage.options.retries.value_or(0);
  while (true) {
    const failover::AttemptOutcome outcome = world.run_attempt(input);
    if (!outcome.started) {
      if (world.stop_requested()) return 128 + world.stop_signal();
      log::error(outcome.trouble);
      return kUsageError;
    }
    world.record("attempt_end", failover::to_json(outcome.record));
    const verdict::Verdict verdict = verdict::attribute(
        outcome.record, [&](std::string_view name) { return world.node_key(name); },
        [&](std::string_view pattern) { return world.remedy_of(pattern); });
    world.record("verdict", failover::to_json(verdict, outcome.record.facts));
    const bool success = verdict.kind == Kind::success;
    if (!success) {
      world.say(verdict.summary);
      if (!verdict.remedy.empty()) world.say("try: " + verdict.remedy);
    }
    const bool by_guard = outcome.record.ending == verdict::Ending::guard;
    if (success || by_guard || world.stop_requested() || input.attempt >= attempts) {
      const char* reason = success ? "success" : world.stop_requested() ? "cancelled" : "failed";
      world.record("stop", {{"reason", reason}, {"attempts", input.attempt}});
      return exit_code(world, outcome.record.exit, success, by_guard);
    }
    ++input.attempt;
    world.say(fmt::format("starting again on the same hosts ({} of {})", input.attempt, attempts));
  }
}

void tell_beginning(failover::LiveWorld& world, const Stage& stage) {
  for (const std::string& note : stage.setup.notes) log::warning(note);
  if (!stage.options.auto_retry) return;
  const auto spares = stage.setup.pool.size() - stage.setup.active;
  world.say(fmt::format("job {} on {}: {} active and {} spare hosts, {} ranks by {}; record in {}",
                        stage.setup.job_id, stage.site.machine.machine.name, stage.setup.active,
                        spares, stage.setup.request.ranks, stage.setup.launcher->name,
                        stage.job_dir));
  if (!stage.site.job.in_job()) return;
  // Who asks for no scheduler need not hear of its absence.
  for (const std::string& trouble : stage.site.job.trouble) {
    log::warning("the scheduler did not answer: " + trouble);
  }
}

// Once a job, when the patterns have been loaded. Who runs a program on his own machine, and asks
// for no failover, need not hear that it has no name.
void tell_of_missing_patterns(failover::LiveWorld& world, const Stage& stage,
                              const evidence::Grammar& grammar) {
  const std::optional<PatternNotice> notice = pattern_notice(
      stage.site.machine, std::string(stage.setup.launcher->name), grammar, stage.site.machines);
  if (!notice) return;
  world.record("unknown", {{"what", "patterns"},
                           {"why", notice->line},
                           {"machine", stage.site.machine.machine.name},
                           {"machine_known", stage.site.machine.known},
                           {"launchers", notice->launchers}});
  if (stage.options.auto_retry || stage.site.job.in_job()) log::warning(notice->line);
}

}  // namespace

int run_launch(const Words& words) {
  LaunchOptions for_help;
  const FlagTable table = launch_flags(for_help);
  if (table.wants_help(words)) {
    std::string text = table.help() + "\nFAILOVER STOP reasons\n";
    for (const verdict::StopReason& reason : verdict::stop_reasons()) {
      text += fmt::format("  {:<20} {}\n", reason.word, reason.meaning);
    }
    write_all(1, text);
    return 0;
  }
  Result<LaunchOptions> options = parse_launch_options(words);
  if (!options) return usage_error(options.error().one_line());
  if (options->quiet) log::set_level(log::Level::warning);

  // The helpers are forked first, while the process is small. They cost a dry run nothing.
  Loop loop;
  loop.hold_signals({SIGUSR1, SIGUSR2});  // a batch system's early word must not end us
  failover::Helpers helpers(loop);
  if (!options->dry_run) {
    if (Status started = helpers.start(); !started) return usage_error(started.error().one_line());
  }
  const auto depth = options->auto_retry ? site::Depth::job : site::Depth::environment;
  Result<SiteView> site = look_around(loop, options->machine, options->machines_dir, depth);
  if (!site) return usage_error(site.error().one_line());
  const launch::MpiSearch search = launch::search_here(
      [&loop](const Argv& argv, double timeout_s) { return run_helper(loop, argv, timeout_s); });
  Result<LaunchSetup> setup = set_up_launch(*options, *site, search);
  if (!setup) return usage_error(setup.error().one_line());
  Stage stage{std::move(*options), std::move(*site), std::move(*setup), ""};
  if (stage.options.dry_run) return print_dry_run(stage);

  const std::string machine = stage.site.machine.machine.name;
  // A site's own patterns are checked before anything is started; the built-in ones are known to
  // be good, and are compiled while the launcher starts.
  std::shared_ptr<evidence::Grammar> checked;
  if (!stage.options.patterns_dir.empty()) {
    Result<evidence::Grammar> own = evidence::Grammar::load(stage.options.patterns_dir, machine);
    if (!own) return usage_error(own.error().one_line());
    checked = std::make_shared<evidence::Grammar>(std::move(*own));
  }
  failover::LiveWorld* told = nullptr;
  const auto grammar_source = [checked, machine, &stage, &told] {
    evidence::Grammar grammar =
        checked ? std::move(*checked) : evidence::Grammar::load("", machine).value();
    tell_of_missing_patterns(*told, stage, grammar);
    return grammar;
  };
  // Until here nothing of ours exists and a signal ends us, as it should. From here on one that
  // comes before there is a world to handle it waits for it.
  loop.hold_signals({SIGINT, SIGTERM, SIGHUP});
  std::optional<failover::JobDir> job_dir;
  if (stage.options.auto_retry || stage.options.log_dir) {
    Result<failover::JobDir> made = failover::make_job_dir(
        helpers.disk, stage.options.log_dir.value_or("logs"), stage.setup.job_id,
        stage.options.auto_retry ? failover::Exclusive::yes : failover::Exclusive::no);
    if (!made) return usage_error(made.error().one_line());
    job_dir.emplace(std::move(*made));
    stage.job_dir = job_dir->path;
  }

  int code = 0;
  bool stopped = false;
  {
    failover::LiveSettings settings = live_settings(stage);
    RunRecord run_record(loop, helpers.disk, stage.job_dir,
                         run_info_of(stage.options, stage.site, stage.setup));
    settings.on_event = [&run_record](std::string_view name, const Json& context) {
      run_record.hear(name, context);
    };
    failover::LiveWorld world(loop, helpers, grammar_source, std::move(settings));
    told = &world;
    if (job_dir && job_dir->lock && !job_dir->lock->unavailable().empty()) {
      world.record("unknown", {{"what", "lock"}, {"why", job_dir->lock->unavailable()}});
    }
    record_start(world, stage);
    tell_beginning(world, stage);
    warn_of_a_mortal_job(loop, stage);
    if (stage.site.job.in_job()) find_program("scancel");  // remembered for the moment of need
    code = stage.options.auto_retry ? run_auto_retry(world, stage) : run_plain(world, stage);
    stopped = world.stopped_after_the_end();
  }
  flush(loop, helpers, !stage.job_dir.empty(), stopped);
  return code;
}

}  // namespace ezpz::app
