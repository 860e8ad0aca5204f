#include "failover/live_world.h"

#include <fmt/core.h>
#include <signal.h>
#include <string.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "failover/live_attempt.h"
#include "failover/record_json.h"

namespace ezpz::failover {
namespace {

constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP};
constexpr std::array kPassedOn{SIGUSR1, SIGUSR2};
constexpr double kBannerWait_s = 0.5;
constexpr double kClockTolerance_s = 2;
constexpr double kAnnouncementHolds_s =
    900;  // sbatch --signal=USR1@<seconds> is minutes, not hours

bool time_is_up(double planned_end_s) {
  return planned_end_s > 0 && wall_s() >= planned_end_s - kClockTolerance_s;
}

}  // namespace

Status Helpers::start() {
  if (Status status = keeper.start(); !status) return status;
  if (Status status = terminal.start("ezpz-terminal", journal::Scribe::Terminal::yes); !status) {
    return status;
  }
  return disk.start("ezpz-scribe");
}

LiveWorld::LiveWorld(Loop& loop, Helpers& helpers, GrammarSource grammar, LiveSettings settings)
    : loop_(loop),
      helpers_(helpers),
      settings_(std::move(settings)),
      grammar_source_(std::move(grammar)) {
  if (!settings_.job_dir.empty()) {
    journal_ = std::make_unique<journal::Journal>(loop_, helpers_.disk,
                                                  settings_.job_dir + "/journal.jsonl");
  }
  for (const int signal : kStopSignals) {
    loop_.on_signal(signal, [this, signal] { on_stop_signal(signal); });
  }
  for (const int signal : kPassedOn) {
    loop_.on_signal(signal, [this, signal] {
      end_announced_s_ = monotonic_s();
      log::info(std::string(strsignal(signal)) + " received: for the ranks");
      if (journal_) journal_->note("signal", {{"signal", signal}, {"effect", "passed on"}});
      if (current_ != nullptr) current_->supervisor->forward(signal);
    });
  }
  log::set_sink([this](std::string_view line) {
    if (stop_announced_.empty()) {
      write_own_line(std::string(line));
    } else if (journal_) {
      // Nothing comes after the last line.
      journal_->note("late", {{"text", std::string(line.substr(0, line.find('\n')))}});
    }
  });
}

LiveWorld::~LiveWorld() {
  for (const int signal : kStopSignals) loop_.forget_signal(signal);
  for (const int signal : kPassedOn) loop_.forget_signal(signal);
  if (journal_) {
    journal_->close(1);
    // Said where it can still be said: before the last line, or not at all.
    if (journal_->kept() > 0 && stop_announced_.empty()) {
      log::warning(fmt::format("{} events could not be written to the journal", journal_->kept()));
    }
  }
  log::set_sink({});
}

// A line of our own begins a line, whatever the job left unfinished.
void LiveWorld::write_own_line(std::string line) {
  const bool at_line_start =
      current_ != nullptr ? current_->supervisor->terminal_at_line_start() : at_line_start_;
  if (!at_line_start) line.insert(0, "\n");
  at_line_start_ = true;
  if (helpers_.terminal.alive()) {
    helpers_.terminal.append(2, line);
  } else {
    write_all(2, line);  // somebody ended the writer: better blocking than silent
  }
}

// The job's end is near: only as long as that may still be so, and only where a job can end.
bool LiveWorld::end_announced() {
  return settings_.scheduler != site::SchedulerKind::none && end_announced_s_ > 0 &&
         monotonic_s() - end_announced_s_ < kAnnouncementHolds_s;
}

const evidence::Grammar& LiveWorld::grammar() {
  if (!grammar_) grammar_.emplace(grammar_source_());
  return *grammar_;
}

void LiveWorld::on_stop_signal(int signal) {
  const bool first = stop_signal_ == 0;
  if (first) stop_signal_ = signal;
  ++stops_;
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
  if (!can_ask()) return;
  ask_job([this](const Result<site::Job>& job) {
    if (!job) return;
    const double end_s = planned_end_s(*job).value_or(0);
    if (current_ != nullptr) note_job(*job, current_->view);
    const bool not_ending =
        job->phase == site::JobPhase::running || job->phase == site::JobPhase::waiting;
    const bool clock_may_tell = !site::scheduler(settings_.scheduler).state_tells_the_end;
    if (not_ending && !(clock_may_tell && time_is_up(end_s))) return;
    // The banner that names the reason may still be on its way.
    loop_.after(kBannerWait_s,
                [this, alive = std::weak_ptr<int>(alive_), state = job->state, end_s] {
                  if (!alive.expired()) consider_early_end(state, end_s);
                });
  });
}

// Once a job is ending, SLURM's EndTime is the moment it began to: what counts is what was planned
// while it ran.
std::optional<double> LiveWorld::planned_end_s(const site::Job& job) {
  if (job.phase == site::JobPhase::running && job.end_time_s) {
    settings_.planned_end_s = job.end_time_s;
  }
  return settings_.planned_end_s;
}

void LiveWorld::note_job(const site::Job& job, verdict::SchedulerView& view) {
  view.job_state = job.state;
  view.end_time_s = planned_end_s(job);
}

void LiveWorld::consider_early_end(const std::string& job_state, double planned_end_s) {
  if (!stop_announced_.empty() || !settings_.failover) return;
  std::string reason = "cancelled";
  if (job_state == "TIMEOUT" || time_is_up(planned_end_s)) reason = "walltime";
  if (job_state == "PREEMPTED") reason = "preempted";
  if (current_ != nullptr && current_->stream) {
    for (const Fact& fact : current_->stream->facts()) {
      if (fact.event != Event::limit) continue;
      if (fact.kind == Kind::walltime || fact.kind == Kind::preempted)
        reason = to_string(fact.kind);
    }
  }
  // Claimed before it is recorded: recording runs the loop, and a second answer may come in it.
  const std::string why = "the scheduler says " + job_state;
  announce_stop(reason);
  const Json context = {{"reason", reason}, {"why", why}, {"early", true}};
  tell("stop", context);
  if (journal_) journal_->record("stop", context);
}

void LiveWorld::announce_stop(const std::string& reason) {
  if (!stop_announced_.empty()) return;
  stop_announced_ = reason;
  // While the ranks still end, their last words go to the log only.
  if (current_ != nullptr) current_->supervisor->mute_terminal();
  write_own_line("FAILOVER STOP: " + reason + "\n");
}

void LiveWorld::record(std::string_view name, const Json& context) {
  if (journal_ == nullptr) return;
  if (name == "stop" && !stop_announced_.empty()) return;  // it has been said, and stays
  tell(name, context);
  journal_->record(name, context);
}

void LiveWorld::tell(std::string_view name, const Json& context) {
  if (journal_ && settings_.on_event) settings_.on_event(name, context);
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

void LiveWorld::pause(double seconds) {
  bool expired = false;
  const int stops_before = stops_;
  const Loop::TimerId timer = loop_.after(seconds, [&] { expired = true; });
  loop_.run_until([&] { return expired || stops_ != stops_before; });
  loop_.cancel(timer);
}

}  // namespace ezpz::failover
