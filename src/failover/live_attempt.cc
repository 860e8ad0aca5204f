// One attempt of the live world: the plan, the run, what its output tells while it runs, the
// record.
#include <arpa/inet.h>
#include <errno.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "failover/live_attempt.h"
#include "failover/live_world.h"
#include "failover/record_json.h"
#include "launch/port.h"

namespace ezpz::failover {
namespace {

constexpr double kHostfileWait_s = 2;

bool port_is_free_here(int port) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return true;  // unknown; the ranks will tell
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Result<launch::Plan> LiveWorld::make_plan(const AttemptInput& input,
                                          std::string* hostfile_trouble) {
  launch::Request request = settings_.request;
  request.hosts = input.active;
  request.excluded = input.excluded;
  request.attempt = input.attempt;
  request.overlap = input.overlap;
  request.job_id = settings_.job_id;
  request.attempt_id = run_id() + std::to_string(input.attempt);
  request.master_port =
      launch::choose_port(settings_.job_id, input.attempt, settings_.run_salt, port_is_free_here);
  // Fewer hosts than planned (shrunk): as many ranks a node as before.
  const int most = request.ranks_per_node * static_cast<int>(input.active.size());
  request.ranks = std::min(request.ranks, most);
  request.hostfile_path.clear();
  if (!settings_.job_dir.empty()) {
    const std::string path = settings_.job_dir + "/active.hostfile";
    auto trouble = std::make_shared<int>(ETIMEDOUT);
    helpers_.disk.replace(path, input.hostfile_text, [trouble](int got) { *trouble = got; });
    helpers_.disk.settle(kHostfileWait_s);
    // A stale file would send the ranks to the node that was just taken out: then the list goes on
    // the command line instead.
    if (*trouble == 0) {
      request.hostfile_path = path;
    } else {
      *hostfile_trouble = strerrordesc_np(*trouble);
    }
  }
  Result<launch::Plan> plan = settings_.launcher->plan(request);
  if (!plan || plan->files.empty()) return plan;
  auto trouble = std::make_shared<std::vector<int>>(plan->files.size(), ETIMEDOUT);
  for (size_t i = 0; i < plan->files.size(); ++i) {
    helpers_.disk.replace(plan->files[i].path, plan->files[i].text,
                          [trouble, i](int got) { (*trouble)[i] = got; });
  }
  helpers_.disk.settle(kHostfileWait_s);
  const auto failed = std::find_if(trouble->begin(), trouble->end(), [](int t) { return t != 0; });
  if (failed == trouble->end()) return plan;
  *hostfile_trouble = strerrordesc_np(*failed);
  request.hostfile_path.clear();
  return settings_.launcher->plan(request);
}

AttemptOutcome LiveWorld::run_attempt(const AttemptInput& input) {
  AttemptOutcome outcome;
  std::string hostfile_trouble;
  const Result<launch::Plan> plan = make_plan(input, &hostfile_trouble);
  if (!plan) {
    outcome.trouble = plan.error().one_line();
    return outcome;
  }
  record("attempt_start", {{"attempt", input.attempt},
                           {"launcher", plan->launcher},
                           {"argv", launch::mask_secrets(plan->argv)},
                           {"hosts", spellings_json(input.active)},
                           {"excluded", spellings_json(input.excluded)},
                           {"planned", placement_json(plan->host_of_rank)},
                           {"master", fmt::format("{}:{}", plan->master_addr, plan->master_port)},
                           {"attempt_id", run_id() + std::to_string(input.attempt)},
                           {"hostfile_trouble", hostfile_trouble}});
  last_step_id_.clear();

  Attempt attempt;
  attempt.hosts = spellings(input.active);
  attempt.number = input.attempt;
  supervise::Supervisor supervisor(loop_, helpers_.keeper, settings_.supervise,
                                   {[&] { listen(attempt, *plan); },
                                    [&](std::string_view bytes) { attempt.stream->feed(bytes); },
                                    [&](Fact fact) {
                                      if (journal_) journal_->note("self", to_json(fact));
                                      if (attempt.stream) {
                                        attempt.stream->note(std::move(fact));
                                      } else {
                                        attempt.before_stream.push_back(std::move(fact));
                                      }
                                    }});
  attempt.supervisor = &supervisor;

  current_ = &attempt;
  supervise::Tee::Outlet log;
  auto log_opened = std::make_shared<int>(0);
  if (!settings_.job_dir.empty()) {
    log.scribe = &helpers_.disk;
    log.file = helpers_.disk.open_append(
        fmt::format("{}/attempt-{}.log", settings_.job_dir, input.attempt),
        [log_opened](int trouble) { *log_opened = trouble; });
  }
  if (stop_signal_ != 0) {
    current_ = nullptr;
    outcome.trouble = "a stop was asked for before the start";
    return outcome;
  }
  const Result<supervise::Outcome> end =
      supervisor.run(*plan, {&helpers_.terminal, 1, settings_.network_lines_are_ours}, log);
  at_line_start_ = supervisor.terminal_at_line_start();
  if (!end) {
    current_ = nullptr;
    outcome.trouble = end.error().one_line();
    return outcome;
  }
  stopped_after_the_end_ = end->stopped_after_the_end;
  attempt.stream->finish();
  if (plan->silent_exit && end->stopped_by == supervise::StopCause::none) {
    note_silent_exit(attempt, end->exit);
  }
  note_placement(attempt, *plan, true);
  settle_network(attempt, true);
  tell_losses(*end, input.attempt, *log_opened);
  // A clean end without a word against it needs no questions.
  if (!end->exit.clean() || attempt.asked_s > 0) await_scheduler(attempt);
  current_ = nullptr;

  outcome.started = true;
  verdict::AttemptRecord& record = outcome.record;
  record.attempt = input.attempt;
  for (const Node& host : input.active) record.active.push_back(host.key);
  for (const Node& host : input.excluded) record.retired_earlier.push_back(host.key);
  record.host_of_rank = plan->host_of_rank;
  for (const auto& [host, ranks] : attempt.stream->topology().hosts()) {
    for (const int rank : ranks) record.host_of_rank[rank] = host;
  }
  record.facts = attempt.stream->facts();
  record.exit = end->exit;
  record.ending = end->stopped_by == supervise::StopCause::watchdog ? verdict::Ending::watchdog
                  : end->stopped_by == supervise::StopCause::user   ? verdict::Ending::user_stop
                  : end->stopped_by == supervise::StopCause::guard  ? verdict::Ending::guard
                                                                    : verdict::Ending::exited;
  record.progress = attempt.stream->progress();
  record.scheduler = attempt.view;
  record.started_s = end->started_s;
  record.ended_s = end->ended_s;
  record.network = settings_.network;
  record.user_asked_stop_by_signal = end_announced();
  if (attempt.first_step_s > 0) {
    outcome.first_step_after_s = attempt.first_step_s - attempt.started_s;
  }
  outcome.checkpoint_interval_s = attempt.checkpoint_interval_s;
  return outcome;
}

// A job may print anything, an old log with another job's "launching StepId=" included: only a step
// of this job is ever signalled.
bool LiveWorld::is_our_step(const std::string& step_id) const {
  const std::string job = step_id.substr(0, step_id.rfind('.'));
  return !step_id.empty() && std::find(settings_.step_job_ids.begin(), settings_.step_job_ids.end(),
                                       job) != settings_.step_job_ids.end();
}

// Where the launcher only hands on a rank's exit code, that code is all there is to know. Said
// nothing about anything else, too: its own troubles have exit codes as well, but not in silence.
void LiveWorld::note_silent_exit(Attempt& attempt, const Exit& exit) {
  constexpr int last_of_programs = 125;  // above: not found, not run, ended by a signal
  if (exit.signal != 0 || exit.code < 1 || exit.code > last_of_programs) return;
  for (const Fact& fact : attempt.stream->facts()) {
    if (fact.role == Role::cause || fact.pattern.starts_with("hydra.")) return;
  }
  Fact fact;
  fact.time_s = wall_s();
  fact.source = Source::self;
  fact.pattern = "self.exit_code";
  fact.text = fmt::format("the launcher handed on a rank's exit code {}", exit.code);
  fact.code = exit.code;
  fact.role = Role::cause;
  fact.event = Event::death;
  fact.kind = Kind::app_error;
  if (journal_) journal_->note("self", to_json(fact));
  attempt.stream->note(std::move(fact));
}

// What of the output did not arrive, and why.
void LiveWorld::tell_losses(const supervise::Outcome& end, int attempt, int log_opened) {
  const auto why = [](int trouble, const journal::Scribe& scribe, const char* stuck) {
    if (trouble != 0) return strerrordesc_np(trouble);
    return scribe.alive() ? stuck : "its writer was ended";
  };
  if (end.log_bytes_lost > 0) {
    const int trouble = log_opened != 0 ? log_opened : end.log_trouble;
    const std::string reason = why(trouble, helpers_.disk, "the disk is stuck");
    record("log_gap", {{"attempt", attempt}, {"bytes", end.log_bytes_lost}, {"why", reason}});
    log::warning(
        fmt::format("attempt-{}.log lacks {} bytes: {}", attempt, end.log_bytes_lost, reason));
  }
  if (end.terminal_bytes_skipped > 0) {
    log::warning(fmt::format("{} bytes were not shown here: {}{}", end.terminal_bytes_skipped,
                             why(end.terminal_trouble, helpers_.terminal, "the terminal was stuck"),
                             settings_.job_dir.empty() ? "" : "; the log has them"));
  }
}

// From here on the attempt's output is understood.
void LiveWorld::listen(Attempt& attempt, const launch::Plan& plan) {
  // Not in one go: loading the grammar may wait for the disk, and signals are heard meanwhile.
  const evidence::Grammar& understood = grammar();
  attempt.stream.emplace(understood);
  for (Fact& fact : attempt.before_stream) attempt.stream->note(std::move(fact));
  attempt.before_stream.clear();
  attempt.stream->on_fact([this, &attempt, &plan](const Fact& fact) {
    if (fact.event == Event::placement && last_step_id_.empty() && is_our_step(fact.step_id)) {
      last_step_id_ = fact.step_id;
      attempt.supervisor->step_known(fact.step_id);
    }
    if (fact.event == Event::placement) note_placement(attempt, plan, false);
    if (is_equipment(fact.event)) hear_of_equipment(attempt, fact);
    if (fact.event == Event::limit && fact.kind == Kind::walltime) ask_about_the_end();
    const bool foreign = !fact.step_id.empty() && fact.step_id != last_step_id_;
    if (fact.event == Event::teardown && !foreign) attempt.supervisor->teardown_seen();
    if (plan.silent_exit && fact.role == Role::cause && fact.source == Source::output) {
      attempt.supervisor->rank_failed();
    }
    const bool trouble_begins = fact.role == Role::cause || fact.event == Event::teardown;
    if (trouble_begins && attempt.asked_s == 0) ask_scheduler(attempt);
  });
  attempt.stream->on_progress([&attempt](const evidence::Progress& progress) {
    const double now_s = monotonic_s();
    if (progress.last_step != attempt.last_step) attempt.supervisor->progressed();
    attempt.last_step = progress.last_step;
    if (attempt.first_step_s == 0 && progress.first_step) attempt.first_step_s = now_s;
    if (progress.last_checkpoint && progress.last_checkpoint != attempt.checkpoint) {
      if (attempt.checkpoint) attempt.checkpoint_interval_s = now_s - attempt.checkpoint_s;
      attempt.checkpoint = progress.last_checkpoint;
      attempt.checkpoint_s = now_s;
    }
  });
}

// Where the ranks really run, as the launcher says; said once, loudly when it is not as planned.
void LiveWorld::note_placement(Attempt& attempt, const launch::Plan& plan, bool at_the_end) {
  if (attempt.placement_noted) return;
  // Under srun with torchrun NCCL's rank 1 is not srun's: a communicator is no word against the
  // plan.
  const std::map<int, std::string>& actual = attempt.stream->topology().placed();
  if (actual.empty() || (!at_the_end && actual.size() < plan.host_of_rank.size())) return;
  attempt.placement_noted = true;
  std::vector<std::string> strangers;
  for (const auto& [rank, host] : actual) {
    const auto planned = plan.host_of_rank.find(rank);
    if (planned != plan.host_of_rank.end() && node_key(planned->second) != node_key(host)) {
      strangers.push_back(fmt::format("rank {} on {} instead of {}", rank, host, planned->second));
    }
  }
  const Json context = {
      {"step_id", last_step_id_}, {"placement", placement_json(actual)}, {"mismatch", strangers}};
  if (journal_) journal_->note("placement", context);
  if (!strangers.empty()) {
    log::error("ranks do not run where they were sent: " + strangers.front() +
               (strangers.size() > 1 ? fmt::format(" and {} more", strangers.size() - 1) : ""));
  }
}

}  // namespace ezpz::failover
