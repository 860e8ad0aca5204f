#include "failover/live_world.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "failover/record_json.h"
#include "launch/port.h"

namespace ezpz::failover {
namespace {

constexpr double kHostfileWait_s = 2;
constexpr double kSchedulerPatience_s = 5;  // after an attempt's end, for answers still under way
constexpr double kAnswersAge_s = 10;        // older answers are asked for again at the end
constexpr double kShortWait_s = 1;          // for a survivor to be gone after SIGKILL
constexpr double kFenceWait_s = 5;          // the same, when it is not gone by then
constexpr double kStaleStepCheck_s = 0.4;
constexpr double kBannerWait_s = 0.5;
constexpr double kClockTolerance_s = 2;
constexpr int kStaleStepChecks = 3;

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

Status Helpers::start() {
  if (Status status = keeper.start(); !status) return status;
  if (Status status = terminal.start("ezpz-terminal"); !status) return status;
  return disk.start("ezpz-scribe");
}

// One attempt under way and what is learnt about it.
struct LiveWorld::Attempt {
  std::optional<evidence::Stream> stream;  // once the launcher runs
  supervise::Supervisor* supervisor = nullptr;
  verdict::SchedulerView view;
  std::vector<std::string> hosts;  // spelled
  int questions_open = 0;
  double asked_s = 0;  // monotonic; 0: not yet
  double started_s = monotonic_s();
  double first_step_s = 0;
  double checkpoint_s = 0;
  double checkpoint_interval_s = 0;
  std::optional<int64_t> checkpoint;
  bool placement_noted = false;
};

LiveWorld::LiveWorld(Loop& loop, Helpers& helpers, GrammarSource grammar, LiveSettings settings)
    : loop_(loop),
      helpers_(helpers),
      settings_(std::move(settings)),
      grammar_source_(std::move(grammar)) {
  if (!settings_.job_dir.empty()) {
    journal_ = std::make_unique<journal::Journal>(loop_, helpers_.disk,
                                                  settings_.job_dir + "/journal.jsonl");
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    loop_.on_signal(signal, [this, signal] { on_stop_signal(signal); });
  }
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    loop_.on_signal(signal, [this, signal] {
      end_announced_ = true;
      log::info(std::string(strsignal(signal)) + " received: passed on to the ranks");
      if (journal_) journal_->note("signal", {{"signal", signal}, {"effect", "passed on"}});
      if (current_ != nullptr) current_->supervisor->forward(signal);
    });
  }
  log::set_sink([this](std::string_view line) {
    if (stop_announced_.empty()) {
      helpers_.terminal.append(2, line);
    } else if (journal_) {
      // Nothing comes after the last line.
      journal_->note("late", {{"text", std::string(line.substr(0, line.find('\n')))}});
    }
  });
}

LiveWorld::~LiveWorld() {
  log::set_sink({});
  if (journal_) journal_->close(1);
}

const evidence::Grammar& LiveWorld::grammar() {
  if (!grammar_) grammar_.emplace(grammar_source_());
  return *grammar_;
}

void LiveWorld::on_stop_signal(int signal) {
  const bool first = stop_signal_ == 0;
  if (first) stop_signal_ = signal;
  log::info(fmt::format("{} received: {}", strsignal(signal),
                        first ? "stopping the ranks in order" : "ending the ranks at once"));
  if (journal_) {
    journal_->note("signal",
                   {{"signal", signal}, {"effect", first ? "graceful stop" : "hard stop"}});
  }
  if (current_ != nullptr) {
    current_->supervisor->stop(supervise::StopCause::user, signal);
  }
  if (first) ask_about_the_end();
}

// A scheduler that takes the job down sends SIGTERM first and SIGKILL soon after: what it is must
// be known, and written, in between.
void LiveWorld::ask_about_the_end() {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.job_query == nullptr || settings_.job_id.empty()) return;
  start_helper(loop_, scheduler.job_query(settings_.job_id), site::query_timeout_s,
               [this, alive = std::weak_ptr<int>(alive_), &scheduler](HelperResult result) {
                 if (alive.expired() || !result.usable()) return;
                 const Result<site::slurm::Job> job = scheduler.read_job(result.out);
                 if (!job) return;
                 const double end_s = planned_end_s(*job).value_or(0);
                 if (current_ != nullptr) note_job(*job, current_->view);
                 if (job->state == "RUNNING" || job->state == "PENDING") return;
                 // The banner that names the reason may still be on its way.
                 loop_.after(kBannerWait_s, [this, alive, state = job->state, end_s] {
                   if (!alive.expired()) consider_early_end(state, end_s);
                 });
               });
}

// Once a job is ending, its EndTime is the moment it began to: what counts is what was planned
// while it ran.
std::optional<double> LiveWorld::planned_end_s(const site::slurm::Job& job) {
  if (job.state == "RUNNING" && job.end_time_s) settings_.planned_end_s = job.end_time_s;
  return settings_.planned_end_s;
}

void LiveWorld::note_job(const site::slurm::Job& job, verdict::SchedulerView& view) {
  view.job_state = job.state;
  view.end_time_s = planned_end_s(job);
}

void LiveWorld::consider_early_end(const std::string& job_state, double planned_end_s) {
  if (!stop_announced_.empty() || journal_ == nullptr) return;
  std::string reason = "cancelled";
  const bool time_was_up = planned_end_s > 0 && wall_s() >= planned_end_s - kClockTolerance_s;
  if (job_state == "TIMEOUT" || time_was_up) reason = "walltime";
  if (job_state == "PREEMPTED") reason = "preempted";
  if (current_ != nullptr && current_->stream) {
    for (const Fact& fact : current_->stream->facts()) {
      if (fact.event != Event::limit) continue;
      if (fact.kind == Kind::walltime || fact.kind == Kind::preempted)
        reason = to_string(fact.kind);
    }
  }
  record("stop", {{"reason", reason}, {"why", "the scheduler says " + job_state}, {"early", true}});
  announce_stop(reason);
}

void LiveWorld::announce_stop(const std::string& reason) {
  if (!stop_announced_.empty()) return;
  stop_announced_ = reason;
  // While the ranks still end, their last words go to the log only.
  if (current_ != nullptr) current_->supervisor->mute_terminal();
  helpers_.terminal.append(2, "FAILOVER STOP: " + reason + "\n");
}

void LiveWorld::record(std::string_view name, const Json& context) {
  if (journal_ == nullptr) return;
  if (name == "stop" && !stop_announced_.empty()) return;  // it has been said, and stays
  journal_->record(name, context);
}

void LiveWorld::say(const std::string& line) { log::info(line); }

std::string LiveWorld::node_key(std::string_view spelled) {
  return ezpz::node_key(spelled, settings_.naming);
}

void LiveWorld::publish_bad_nodes(const std::string& text) {
  if (settings_.job_dir.empty()) return;
  helpers_.disk.replace(settings_.job_dir + "/bad_nodes.txt", text);
}

std::string LiveWorld::run_id() const {
  return fmt::format("{}.{}.", settings_.job_id, settings_.run_salt);
}

Result<launch::Plan> LiveWorld::make_plan(const AttemptInput& input,
                                          std::string* hostfile_trouble) {
  launch::Request request = settings_.request;
  request.hosts = input.active;
  request.excluded = input.excluded;
  request.attempt = input.attempt;
  request.overlap = input.overlap;
  request.job_id = settings_.job_id;
  request.attempt_id = fmt::format("{}.{}.{}", settings_.job_id, settings_.run_salt, input.attempt);
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
  last_attempt_id_ = request.attempt_id;
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
                           {"argv", plan->argv},
                           {"hosts", spellings_json(input.active)},
                           {"excluded", spellings_json(input.excluded)},
                           {"planned", placement_json(plan->host_of_rank)},
                           {"master", fmt::format("{}:{}", plan->master_addr, plan->master_port)},
                           {"attempt_id", last_attempt_id_},
                           {"hostfile_trouble", hostfile_trouble}});
  last_step_id_.clear();

  Attempt attempt;
  attempt.hosts = spellings(input.active);
  supervise::Supervisor supervisor(loop_, helpers_.keeper, settings_.supervise,
                                   {[&] { listen(attempt, *plan); },
                                    [&](std::string_view bytes) { attempt.stream->feed(bytes); },
                                    [&](Fact fact) {
                                      if (journal_) journal_->note("self", to_json(fact));
                                      attempt.stream->note(std::move(fact));
                                    }});
  attempt.supervisor = &supervisor;

  current_ = &attempt;
  supervise::Tee::Outlet log;
  if (!settings_.job_dir.empty()) {
    log.scribe = &helpers_.disk;
    log.file = helpers_.disk.open_append(
        fmt::format("{}/attempt-{}.log", settings_.job_dir, input.attempt));
  }
  if (stop_signal_ != 0) {
    current_ = nullptr;
    outcome.trouble = "a stop was asked for before the start";
    return outcome;
  }
  const Result<supervise::Outcome> end = supervisor.run(*plan, {&helpers_.terminal, 1}, log);
  if (!end) {
    current_ = nullptr;
    outcome.trouble = end.error().one_line();
    return outcome;
  }
  attempt.stream->finish();
  note_placement(attempt, *plan, true);
  if (end->log_bytes_lost > 0) {
    const char* why =
        end->log_trouble != 0 ? strerrordesc_np(end->log_trouble) : "the disk is stuck";
    record("log_gap", {{"attempt", input.attempt}, {"bytes", end->log_bytes_lost}, {"why", why}});
    log::warning(
        fmt::format("attempt-{}.log lacks {} bytes: {}", input.attempt, end->log_bytes_lost, why));
  }
  if (end->terminal_bytes_skipped > 0) {
    log::warning(
        fmt::format("{} bytes were not shown here (the terminal was stuck); the log has them",
                    end->terminal_bytes_skipped));
  }
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
                                                                    : verdict::Ending::exited;
  record.progress = attempt.stream->progress();
  record.scheduler = attempt.view;
  record.started_s = end->started_s;
  record.ended_s = end->ended_s;
  record.user_asked_stop_by_signal = end_announced_;
  if (attempt.first_step_s > 0)
    outcome.first_step_after_s = attempt.first_step_s - attempt.started_s;
  outcome.checkpoint_interval_s = attempt.checkpoint_interval_s;
  return outcome;
}

// From here on the attempt's output is understood.
void LiveWorld::listen(Attempt& attempt, const launch::Plan& plan) {
  attempt.stream.emplace(grammar());
  attempt.stream->on_fact([this, &attempt, &plan](const Fact& fact) {
    if (!fact.step_id.empty() && fact.event == Event::placement) {
      last_step_id_ = fact.step_id;
      attempt.supervisor->step_known(fact.step_id);
    }
    if (fact.event == Event::placement) note_placement(attempt, plan, false);
    if (fact.event == Event::limit && fact.kind == Kind::walltime) ask_about_the_end();
    if (fact.event == Event::teardown) attempt.supervisor->teardown_seen();
    const bool trouble_begins = fact.role == Role::cause || fact.event == Event::teardown;
    if (trouble_begins && attempt.asked_s == 0) ask_scheduler(attempt);
  });
  attempt.stream->on_progress([&attempt](const evidence::Progress& progress) {
    const double now_s = monotonic_s();
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
  std::map<int, std::string> actual;
  for (const auto& [host, ranks] : attempt.stream->topology().hosts()) {
    for (const int rank : ranks) actual[rank] = host;
  }
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

void LiveWorld::ask_scheduler(Attempt& attempt) {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.job_query == nullptr || settings_.job_id.empty()) return;
  attempt.asked_s = monotonic_s();
  attempt.view.trouble.clear();
  attempt.questions_open += 2;
  start_helper(
      loop_, scheduler.job_query(settings_.job_id), site::query_timeout_s,
      [this, &attempt, alive = std::weak_ptr<int>(alive_), &scheduler](HelperResult result) {
        if (alive.expired() || current_ != &attempt) return;
        --attempt.questions_open;
        const Result<site::slurm::Job> job =
            result.usable() ? scheduler.read_job(result.out)
                            : Result<site::slurm::Job>(Error{result.trouble, "", ""});
        if (!job) {
          attempt.view.trouble.push_back("job: " + job.error().one_line());
          return;
        }
        note_job(*job, attempt.view);
      });
  start_helper(
      loop_, scheduler.nodes_query(attempt.hosts), site::query_timeout_s,
      [this, &attempt, alive = std::weak_ptr<int>(alive_), &scheduler](HelperResult result) {
        if (alive.expired() || current_ != &attempt) return;
        --attempt.questions_open;
        if (!result.usable()) {
          attempt.view.trouble.push_back("nodes: " + result.trouble);
          return;
        }
        for (const auto& [host, state] : scheduler.read_nodes(result.out)) {
          attempt.view.node_states[node_key(host)] = state;
        }
      });
}

void LiveWorld::await_scheduler(Attempt& attempt) {
  const bool old = attempt.asked_s == 0 || monotonic_s() - attempt.asked_s > kAnswersAge_s;
  if (attempt.questions_open == 0 && old) ask_scheduler(attempt);
  bool expired = false;
  const Loop::TimerId timer = loop_.after(kSchedulerPatience_s, [&] { expired = true; });
  loop_.run_until([&] { return attempt.questions_open == 0 || expired; });
  loop_.cancel(timer);
  if (attempt.questions_open > 0) {
    attempt.view.trouble.push_back("the scheduler has not answered in time");
  }
  for (const std::string& trouble : attempt.view.trouble) {
    record("unknown", {{"what", "scheduler"}, {"why", trouble}});
  }
}

NodeStates LiveWorld::node_states(const std::vector<Node>& hosts) {
  NodeStates known;
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.nodes_query == nullptr || settings_.job_id.empty()) return known;
  HelperResult nodes;
  HelperResult job;
  int open = 2;
  start_helper(loop_, scheduler.nodes_query(spellings(hosts)), kSchedulerPatience_s,
               [&](HelperResult got) {
                 nodes = std::move(got);
                 --open;
               });
  start_helper(loop_, scheduler.job_query(settings_.job_id), kSchedulerPatience_s,
               [&](HelperResult got) {
                 job = std::move(got);
                 --open;
               });
  loop_.run_until([&] { return open == 0; });
  if (!nodes.usable()) known.trouble = nodes.trouble;
  for (const auto& [host, state] : scheduler.read_nodes(nodes.out)) {
    known.states[node_key(host)] = state;
  }
  // A node that was lost is out of the job for good, though its state may be IDLE again (seen).
  const Result<site::slurm::Job> view = job.usable()
                                            ? scheduler.read_job(job.out)
                                            : Result<site::slurm::Job>(Error{job.trouble, "", ""});
  if (!view) {
    known.trouble = view.error().one_line();
  } else if (!view->hosts.empty()) {
    std::set<std::string> ours;
    for (const std::string& host : view->hosts) ours.insert(node_key(host));
    for (const Node& host : hosts) {
      if (!ours.contains(host.key)) known.states[host.key] = std::string(site::kNotInJob);
    }
  }
  return known;
}

std::optional<double> LiveWorld::time_left_s() {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.job_query == nullptr || settings_.job_id.empty()) return std::nullopt;
  const HelperResult result =
      run_helper(loop_, scheduler.job_query(settings_.job_id), kSchedulerPatience_s);
  const Result<site::slurm::Job> job =
      result.usable() ? scheduler.read_job(result.out)
                      : Result<site::slurm::Job>(Error{result.trouble, "", ""});
  if (!job) {
    record("unknown", {{"what", "time left"}, {"why", job.error().one_line()}});
    return std::nullopt;
  }
  const std::optional<double> end_s = planned_end_s(*job);
  if (!end_s) return std::nullopt;
  return *end_s - wall_s();
}

probe::ProbeSpec LiveWorld::probe_spec(const std::vector<Node>& hosts) const {
  probe::ProbeSpec spec;
  spec.reach = settings_.launcher->name == "srun" ? probe::Reach::srun : probe::Reach::local;
  spec.hosts = hosts;
  spec.self_path = settings_.request.self_path;
  return spec;
}

verdict::ProbeOutcome LiveWorld::probe(const std::vector<Node>& hosts) {
  const probe::ProbeResult result = run_probe(loop_, probe_spec(hosts), settings_.naming);
  verdict::ProbeOutcome outcome;
  outcome.trouble = result.trouble;
  // Nobody answered at all: the launcher is the trouble, not every host at once.
  outcome.ran = result.ran && !result.answered.empty();
  if (!outcome.ran) return outcome;
  for (const auto& [host, report] : result.answered) {
    if (!report.healthy()) outcome.failed.push_back(host);
  }
  const NodeStates known = node_states(hosts);
  const auto scheduler_agrees = [&](const std::string& host) {
    const auto state = known.states.find(host);
    return state != known.states.end() && !site::is_usable(state->second);
  };
  // Silence is "unknown" until the scheduler says the same: health checks that took a time-out for
  // sickness have drained healthy nodes. A refusal is an answer, and the host alone was refused,
  // twice, while the others were not.
  for (const std::string& host : result.silent) {
    (scheduler_agrees(host) ? outcome.failed : outcome.unknown).push_back(host);
  }
  const bool others_answer = result.answered.size() > result.refused.size();
  for (const auto& [host, why] : result.refused) {
    const bool sick = others_answer || scheduler_agrees(host);
    (sick ? outcome.failed : outcome.unknown).push_back(host);
  }
  return outcome;
}

FenceOutcome LiveWorld::fence(const std::vector<Node>& kept, const std::vector<Node>& fresh) {
  FenceOutcome outcome;
  if (!last_step_id_.empty() && settings_.launcher->name == "srun") {
    // The old step may stay on its dead node for ever; it is asked to go, not awaited.
    for (const Argv& argv :
         {launch::signal_argv(SIGKILL, last_step_id_), launch::cancel_argv(last_step_id_)}) {
      start_helper(loop_, argv, site::query_timeout_s, [](HelperResult) {});
    }
  }
  std::vector<Node> hosts = kept;
  hosts.insert(hosts.end(), fresh.begin(), fresh.end());
  probe::ProbeSpec spec = probe_spec(hosts);
  spec.check.attempt_id = run_id();
  spec.check.clear = true;
  // Plain first and short: nearly always it answers at once, and after a lost node it frees the
  // cores Slurm still counts as taken on the survivors. What it leaves open is looked at with more
  // patience, past whatever holds the hosts.
  spec.overlap = false;
  spec.check.wait_s = kShortWait_s;
  spec.together_s = spec.alone_s = kShortWait_s + 1.5;
  spec.alone_tries = spec.reach == probe::Reach::local;
  probe::ProbeResult result = run_probe(loop_, spec, settings_.naming);
  const bool waited = result.answered.size() < hosts.size();
  spec.hosts.clear();
  for (const Node& host : hosts) {
    const auto answered = result.answered.find(host.key);
    if (answered == result.answered.end() || !answered->second.healthy())
      spec.hosts.push_back(host);
  }
  if (!spec.hosts.empty()) {
    spec.overlap = true;
    spec.alone_tries = true;
    spec.check.wait_s = kFenceWait_s;
    spec.together_s = spec.alone_s = kFenceWait_s + 8;
    probe::ProbeResult second = run_probe(loop_, spec, settings_.naming);
    for (auto& [host, report] : second.answered) result.answered[host] = std::move(report);
    result.refused = std::move(second.refused);
    result.silent = std::move(second.silent);
    result.ran = second.ran || result.ran;
    result.trouble = second.trouble;
  }
  outcome.trouble = result.trouble;
  outcome.ran = result.ran && !result.answered.empty();
  std::vector<Node> unanswered;
  if (outcome.ran) {
    for (const Node& host : hosts) {
      const auto answered = result.answered.find(host.key);
      if (answered == result.answered.end()) {
        const auto refused = result.refused.find(host.key);
        outcome.uncleared[host.key] = refused != result.refused.end()
                                          ? "a check could not be started on it: " + refused->second
                                          : "it did not answer while others did";
        outcome.provenance[host.key] = verdict::Provenance::unkillable;
        unanswered.push_back(host);
      } else if (!answered->second.survivors.empty()) {
        outcome.uncleared[host.key] = "processes of the last attempt cannot be ended: pid " +
                                      ezpz::ranges(answered->second.survivors);
        outcome.provenance[host.key] = verdict::Provenance::unkillable;
      } else if (!answered->second.tmp_ok) {
        outcome.uncleared[host.key] = "its tmp cannot be written";
        outcome.provenance[host.key] = verdict::Provenance::probed;
      }
    }
  }
  if (!unanswered.empty()) {
    for (const auto& [host, state] : node_states(unanswered).states) {
      if (!site::is_usable(state)) outcome.provenance[host] = verdict::Provenance::scheduler;
    }
  }
  std::vector<Node> clean;
  for (const Node& host : kept) {
    if (!outcome.uncleared.contains(host.key)) clean.push_back(host);
  }
  const bool srun = spec.reach == probe::Reach::srun;
  outcome.stale_step = srun && (waited || stale_step_on(clean, &outcome.trouble));
  return outcome;
}

// Does an old step of ours still hold one of these hosts? A step that is only just ending gets a
// moment.
bool LiveWorld::stale_step_on(const std::vector<Node>& hosts, std::string* trouble) {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.steps_query == nullptr || last_step_id_.empty() || hosts.empty()) return false;
  for (int i = 0; i < kStaleStepChecks; ++i) {
    if (i > 0) pause(kStaleStepCheck_s);
    const HelperResult result =
        run_helper(loop_, scheduler.steps_query(settings_.job_id), kSchedulerPatience_s);
    if (!result.usable()) {
      *trouble = result.trouble;
      return true;  // unknown: overlapping does no harm where there is nothing to overlap
    }
    bool held = false;
    for (const site::slurm::Step& step : scheduler.read_steps(result.out)) {
      if (step.id != last_step_id_) continue;
      for (const std::string& host : step.hosts) {
        held = held || std::any_of(hosts.begin(), hosts.end(),
                                   [&](const Node& kept) { return kept.key == node_key(host); });
      }
    }
    if (!held) return false;
  }
  return true;
}

void LiveWorld::pause(double seconds) {
  bool expired = false;
  const int stop_before = stop_signal_;
  const Loop::TimerId timer = loop_.after(seconds, [&] { expired = true; });
  loop_.run_until([&] { return expired || stop_signal_ != stop_before; });
  loop_.cancel(timer);
}

}  // namespace ezpz::failover
