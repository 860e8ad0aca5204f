#include "supervise/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/proctable.h"

namespace ezpz::supervise {
namespace {

constexpr int kPipe_bytes = 1 << 20;
constexpr double kHardWait_s = 8;        // for the launcher to end after the hard stop
constexpr double kKillWait_s = 5;        // for the kernel to let a SIGKILLed launcher go
constexpr double kWatchdogGrace_s = 10;  // hung ranks do not checkpoint; no long grace
constexpr double kQueryTimeout_s = 10;
// A launcher's end and the end of its output come together, unless some grandchild holds the pipe.
constexpr double kDrainQuiet_s = 0.2;
constexpr double kLastAnswers_s = 0.2;

}  // namespace

Supervisor::Supervisor(Loop& loop, Keeper& keeper, Settings settings, Hooks hooks)
    : loop_(loop), keeper_(keeper), settings_(settings), hooks_(std::move(hooks)) {}

Supervisor::~Supervisor() {
  loop_.cancel(watchdog_);
  loop_.cancel(escalation_);
  loop_.cancel(linger_);
}

Result<Outcome> Supervisor::run(const launch::Plan& plan, Tee::Outlet terminal, Tee::Outlet log) {
  plan_ = &plan;
  stage_ = Stage::running;
  stepped_ = false;
  rank_failed_s_ = 0;
  begun_s_ = monotonic_s();
  step_id_.clear();
  teardown_s_ = 0;
  outcome_ = Outcome{};
  Tee tee(loop_, terminal, log, hooks_.on_output);
  tee_ = &tee;

  const auto not_started = [this](const Error& error) {
    tee_ = nullptr;
    plan_ = nullptr;
    return error;
  };
  Result<Pipe> output = make_pipe();
  if (!output) return not_started(output.error());
  fcntl(output->write.get(), F_SETPIPE_SZ, kPipe_bytes);  // refused above the user's limit: fine
  SpawnSpec spec;
  spec.argv = plan.argv;
  spec.env = plan.env;
  spec.stdout_fd = spec.stderr_fd = output->write.get();
  spec.new_session = true;
  spec.parent_death_signal = SIGKILL;  // the keeper's job too; two are better at 3 a.m.
  outcome_.started_s = wall_s();
  const Result<pid_t> pid = spawn(spec);
  if (!pid) return not_started(pid.error());
  pid_ = *pid;
  output->write.reset();
  keeper_.guard_session(pid_);

  bool ended = false;
  loop_.on_child(pid_, [this, &ended](Exit exit) {
    outcome_.exit = exit;
    stage_ = Stage::over;
    ended = true;
  });
  if (hooks_.on_started) hooks_.on_started();
  tee.start(std::move(output->read));
  arm_watchdog();

  loop_.run_until([&] { return ended || outcome_.abandoned; });
  if (outcome_.abandoned) loop_.on_child(pid_, [](Exit) {});  // reaped whenever it goes
  loop_.cancel(watchdog_);
  loop_.cancel(escalation_);
  loop_.cancel(linger_);
  outcome_.ended_s = wall_s();
  tee.drain(kDrainQuiet_s);
  keeper_.release();
  // What became of the last bytes is known when the writers have answered.
  for (journal::Scribe* scribe : {terminal.scribe, log.scribe}) {
    if (scribe != nullptr && scribe->alive()) scribe->settle(kLastAnswers_s);
  }
  outcome_.output_bytes = tee.bytes();
  outcome_.log_bytes_lost = tee.log_bytes_lost();
  outcome_.terminal_bytes_skipped = tee.terminal_bytes_skipped();
  outcome_.log_trouble = tee.log_trouble();
  outcome_.terminal_trouble = tee.terminal_trouble();
  at_line_start_ = tee.terminal_at_line_start();
  tee_ = nullptr;
  plan_ = nullptr;
  return outcome_;
}

void Supervisor::step_known(const std::string& step_id) {
  if (step_id == step_id_ || step_id.empty() || plan_ == nullptr) return;
  step_id_ = step_id;
  if (plan_->signals == launch::SignalRoute::scancel) {
    keeper_.guard_command(launch::signal_argv(SIGKILL, step_id_));
  }
}

void Supervisor::stop(StopCause cause, int signal) {
  if (plan_ == nullptr) return;
  if (stage_ == Stage::over) {
    if (cause != StopCause::user) return;
    outcome_.stopped_after_the_end = true;
    tee_->give_up();  // only the output's way is still awaited
    return;
  }
  if (stage_ == Stage::running) {
    outcome_.stopped_by = cause;
    outcome_.stop_signal = signal;
    begin_graceful();
  } else if (stage_ == Stage::graceful) {
    begin_hard();
  }
}

void Supervisor::mute_terminal() {
  if (tee_ != nullptr) tee_->mute_terminal();
}

void Supervisor::forward(int signal) {
  if (plan_ == nullptr || stage_ == Stage::over) return;
  deliver(signal);
}

// To the ranks. Under SLURM through the step: SIGTERM to srun itself becomes SIGKILL for ranks that
// trap SIGTERM, and one SIGINT to it only prints its status (facts of Slurm 22.05).
void Supervisor::deliver(int signal) {
  if (plan_->signals == launch::SignalRoute::scancel && !step_id_.empty()) {
    start_helper(
        loop_, launch::signal_argv(signal, step_id_), kQueryTimeout_s,
        [this, signal, alive = std::weak_ptr<int>(alive_)](const HelperResult& result) {
          if (alive.expired()) return;
          if (result.usable() || launch::signalled_in_spite_of(result.trouble)) {
            note_delivered(signal);
            return;
          }
          log::warning("cannot signal the step: " + result.trouble);
          // The step cannot be reached: the launcher can.
          const bool stopping = stage_ == Stage::graceful || stage_ == Stage::hard;
          if (plan_ != nullptr && signal == SIGTERM && stopping) kill(pid_, SIGTERM);
        },
        HelperKind::action);
  } else if (plan_->signals == launch::SignalRoute::command && signal == SIGTERM) {
    start_helper(
        loop_, plan_->signal_command, kQueryTimeout_s,
        [this, alive = std::weak_ptr<int>(alive_)](const HelperResult& result) {
          if (alive.expired() || result.usable() || plan_ == nullptr) return;
          if (stage_ != Stage::graceful) return;
          log::warning("cannot ask the ranks to stop: " + result.trouble);
          kill(pid_, SIGTERM);  // the launcher's own way, which may be a hard one
        },
        HelperKind::action);
  } else if (plan_->signals != launch::SignalRoute::scancel || signal == SIGTERM) {
    kill(pid_, signal);  // a step that is not created yet has no ranks to spare
    note_delivered(signal);
  } else {
    log::warning(std::string(strsignal(signal)) + " was not passed on: no step is known yet");
  }
}

void Supervisor::note_delivered(int signal) {
  if (signal != SIGUSR1 && signal != SIGUSR2) return;
  self_fact("self.signal", std::string("passed on to the ranks: ") + strsignal(signal), signal);
}

void Supervisor::begin_graceful() {
  stage_ = Stage::graceful;
  self_fact("self.stop", "we asked the ranks to stop (SIGTERM)", SIGTERM);
  deliver(SIGTERM);
  const double grace_s = outcome_.stopped_by == StopCause::watchdog
                             ? std::min(settings_.grace_s, kWatchdogGrace_s)
                             : settings_.grace_s;
  escalation_ = loop_.after(grace_s, [this] { begin_hard(); });
}

void Supervisor::begin_hard() {
  stage_ = Stage::hard;
  outcome_.went_hard = true;
  loop_.cancel(escalation_);
  self_fact("self.kill", "we ended the ranks (SIGKILL)", SIGKILL);
  if (plan_->signals == launch::SignalRoute::scancel && !step_id_.empty()) {
    deliver(SIGKILL);
    start_helper(
        loop_, launch::cancel_argv(step_id_), kQueryTimeout_s, [](const HelperResult&) {},
        HelperKind::action);
  } else if (plan_->hard_signal == SIGKILL) {
    begin_kill();
    return;
  } else {
    // Our own launchers take a second SIGTERM as "at once"; srun without a step ends on it.
    kill(pid_, plan_->hard_signal);
  }
  escalation_ = loop_.after(kHardWait_s, [this] { begin_kill(); });
}

void Supervisor::begin_kill() {
  stage_ = Stage::killing;
  kill_family(pid_);
  escalation_ = loop_.after(kKillWait_s, [this] {
    outcome_.abandoned = true;
    self_fact("self.abandoned", "the launcher did not end on SIGKILL; it was left behind", SIGKILL);
  });
}

// A job that falls silent soon after its start and before its first step hangs there, most likely:
// a program that has run for longer, without steps that anybody can read, gets the usual patience;
// less of it once a rank has failed.
double Supervisor::silence_allowed_s() const {
  const double usual_s = settings_.idle_timeout_s * (rank_failed_s_ > 0 ? kFailedPart : 1);
  const double limit_s = settings_.first_step_timeout_s;
  const bool early = limit_s > 0 && !stepped_ && tee_->last_output_s() - begun_s_ <= limit_s;
  if (!early) return usual_s;
  return usual_s > 0 ? std::min(limit_s, usual_s) : limit_s;
}

void Supervisor::arm_watchdog() {
  if (settings_.idle_timeout_s <= 0 && settings_.first_step_timeout_s <= 0) return;
  const double allowed_s = silence_allowed_s();
  if (allowed_s <= 0) return;  // it has come through its start, and nothing else is watched
  const double silent_s = monotonic_s() - tee_->last_output_s();
  const double left_s = tee_->paused() ? allowed_s : allowed_s - silent_s;
  if (left_s > 0) {
    watchdog_ = loop_.after(left_s, [this] { arm_watchdog(); });
    return;
  }
  if (stage_ != Stage::running) return;
  const std::string silence = "no output for " + human_duration(silent_s) +
                              (rank_failed_s_ > 0 ? " after a rank's error" : "");
  self_fact("self.watchdog", silence, 0);
  log::warning(silence + ": ending the attempt");
  stop(StopCause::watchdog, 0);
}

void Supervisor::rank_failed() {
  if (plan_ == nullptr || rank_failed_s_ > 0) return;
  rank_failed_s_ = monotonic_s();
  loop_.cancel(watchdog_);
  arm_watchdog();
}

void Supervisor::progressed() {
  stepped_ = true;
  if (monotonic_s() - rank_failed_s_ > kSameTime_s) rank_failed_s_ = 0;  // seen when it is due
}

void Supervisor::teardown_seen() {
  if (plan_ == nullptr || teardown_s_ > 0) return;
  teardown_s_ = monotonic_s();
  linger_ = loop_.after(kLinger_s, [this] { check_linger(); });
}

void Supervisor::check_linger() {
  const double quiet_s = monotonic_s() - std::max(teardown_s_, tee_->last_output_s());
  if (quiet_s < kLinger_s) {
    linger_ = loop_.after(kLinger_s - quiet_s, [this] { check_linger(); });
    return;
  }
  if (stage_ != Stage::running) return;  // a stop is under way and has its own limits
  outcome_.lingered = true;
  log::warning("the launcher does not end though its ranks were taken down: ending it");
  self_fact("self.linger", "the launcher did not end after the teardown; we ended it", SIGKILL);
  begin_hard();
}

void Supervisor::self_fact(const std::string& pattern, const std::string& text, int signal) {
  Fact fact;
  fact.time_s = wall_s();
  fact.source = Source::self;
  fact.pattern = pattern;
  fact.text = text;
  fact.signal = signal;
  fact.role = Role::context;
  const bool ends_ranks = pattern == "self.stop" || pattern == "self.kill";
  fact.event = ends_ranks ? Event::teardown : Event::message;
  fact.kind = pattern == "self.watchdog" ? Kind::hang : Kind::cancelled;
  if (hooks_.on_fact) hooks_.on_fact(std::move(fact));
}

}  // namespace ezpz::supervise
