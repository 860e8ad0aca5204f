// One attempt from start to end: starts the plan's launcher, tees its output, watches for silence,
// stops it in order when asked, and says how it ended. Event-driven: nothing in here polls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/exit.h"
#include "base/fact.h"
#include "base/loop.h"
#include "base/process.h"
#include "base/result.h"
#include "launch/plan.h"
#include "supervise/keeper.h"
#include "supervise/tee.h"

namespace ezpz::supervise {

struct Settings {
  double idle_timeout_s = 0;  // silence that counts as a hang; 0: never
  // The same for silence that begins so soon after the start, before any step; 0: no such limit.
  double first_step_timeout_s = 0;
  double grace_s = 30;  // between the graceful stop and the hard one
};

enum class StopCause { none, watchdog, user, guard };

// How the attempt ended.
struct Outcome {
  Exit exit;
  bool abandoned = false;  // the launcher could not even be killed (D state): exit is unknown
  StopCause stopped_by = StopCause::none;
  int stop_signal = 0;                 // the signal to ezpz behind a user stop
  bool went_hard = false;              // the grace was over, or was cut short
  bool stopped_after_the_end = false;  // a user's stop found the launcher ended already
  bool lingered = false;  // the launcher did not end by itself after tearing the ranks down
  double started_s = 0;   // wall clock
  double ended_s = 0;
  uint64_t output_bytes = 0;
  uint64_t log_bytes_lost = 0;
  uint64_t terminal_bytes_skipped = 0;
  int log_trouble = 0;       // errno
  int terminal_trouble = 0;  // errno
};

class Supervisor {
 public:
  static constexpr double kLinger_s = 45;  // Slurm's own KillWait is 30 s by default
  // Of the idle limit, after a rank's error: 5 minutes of the usual 30.
  static constexpr double kFailedPart = 1.0 / 6;
  // Steps that others printed at the time of the error may be read a moment after it.
  static constexpr double kSameTime_s = 1;

  struct Hooks {
    // The launcher runs and nothing has been read from it yet: time for what need not delay it.
    std::function<void()> on_started;
    std::function<void(std::string_view)> on_output;
    std::function<void(Fact)> on_fact;  // what we did ourselves: signals sent, the watchdog
  };

  Supervisor(Loop& loop, Keeper& keeper, Settings settings, Hooks hooks);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Runs the loop until the attempt has ended. An error: the launcher could not be started.
  Result<Outcome> run(const launch::Plan& plan, Tee::Outlet terminal, Tee::Outlet log);

  // All of these may be called from callbacks while run() runs.
  // Graceful first; a second call goes hard. signal: the one ezpz received, for the record.
  void stop(StopCause cause, int signal);
  // From now on output goes to the log and the hooks only.
  void mute_terminal();
  // SIGUSR1, SIGUSR2: on to the ranks.
  void forward(int signal);
  // The launcher said it is taking the ranks down. A rank that cannot be killed would hold it for
  // ever: kLinger_s after that without an end or output, the launcher itself is ended.
  void teardown_seen();
  // A rank ended with an error, and this launcher ends no other for it: those may wait for it for
  // ever. From now on a part of the idle limit is enough silence, until progressed().
  void rank_failed();
  // A training step was seen: the job came through its start, and outlived whatever failed before.
  void progressed();
  // What the terminal has of the job's output ends with a newline.
  [[nodiscard]] bool terminal_at_line_start() const {
    return tee_ == nullptr ? at_line_start_ : tee_->terminal_at_line_start();
  }
  // The launcher named its step: signals can be sent to it from now on, the keeper knows it.
  void step_known(const std::string& step_id);

 private:
  enum class Stage { running, graceful, hard, killing, over };
  void begin_graceful();
  void begin_hard();
  void begin_kill();
  void deliver(int signal);
  void note_delivered(int signal);
  void arm_watchdog();
  [[nodiscard]] double silence_allowed_s() const;
  void check_linger();
  void self_fact(const std::string& pattern, const std::string& text, int signal);

  Loop& loop_;
  Keeper& keeper_;
  Settings settings_;
  Hooks hooks_;
  const launch::Plan* plan_ = nullptr;
  Tee* tee_ = nullptr;
  pid_t pid_ = 0;
  std::string step_id_;
  Stage stage_ = Stage::running;
  bool stepped_ = false;
  bool at_line_start_ = true;  // after the last tee
  Outcome outcome_;
  Loop::TimerId watchdog_ = 0;
  Loop::TimerId escalation_ = 0;
  Loop::TimerId linger_ = 0;
  double rank_failed_s_ = 0;                               // monotonic; 0: none that counts
  double begun_s_ = 0;                                     // monotonic
  double teardown_s_ = 0;                                  // monotonic; 0: none seen
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // for answers that come after us
};

}  // namespace ezpz::supervise
