// The output path: what the job prints goes byte for byte to the terminal and to attempt-N.log, and
// past the evidence stream, through bounded memory.
//
// Whoever reads slowly slows the job down, as any pipe would; but nobody may stop it for good: a
// log whose disk is full or stuck for kLogPatience_s is skipped (counted, recorded), and a terminal
// stuck for kTerminalPatience_s is skipped when there is a log that has it all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/loop.h"
#include "journal/scribe.h"
#include "supervise/line_filter.h"

namespace ezpz::supervise {

class Tee {
 public:
  static constexpr size_t kMaxBacklog_bytes = 4U << 20U;
  static constexpr double kLogPatience_s = 2;
  static constexpr double kTerminalPatience_s = 10;
  static constexpr double kDrainLimit_s = 5;
  // How long the beginning of a line may be held back that could still become one of NCCL's.
  static constexpr double kHold_s = 0.1;

  struct Outlet {
    journal::Scribe* scribe = nullptr;  // null: no such outlet
    int file = 1;
    bool hide_nccl = false;  // its INFO lines do not go there (line_filter.h)
  };

  // on_bytes sees everything, first. The scribes must outlive the tee.
  Tee(Loop& loop, Outlet terminal, Outlet log, std::function<void(std::string_view)> on_bytes);
  ~Tee();
  Tee(const Tee&) = delete;
  Tee& operator=(const Tee&) = delete;

  // Takes over the read end of the job's output.
  void start(Fd source);
  // After the launcher has ended: reads to the end of the pipe. A process that still holds the
  // other end is awaited only until quiet_s pass without output, and never longer than
  // kDrainLimit_s.
  void drain(double quiet_s);
  // A drain under way ends now, whatever is still in the pipe.
  void give_up() { given_up_ = true; }

  void mute_terminal();

  // What went to the terminal so far ends with a newline.
  [[nodiscard]] bool terminal_at_line_start() const { return at_line_start_; }
  [[nodiscard]] double last_output_s() const { return last_output_s_; }  // monotonic
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t log_bytes_lost() const { return log_.losses->bytes; }
  [[nodiscard]] uint64_t terminal_bytes_skipped() const { return terminal_.losses->bytes; }
  // errno of the last failed write; 0: none failed
  [[nodiscard]] int log_trouble() const { return log_.losses->trouble; }
  [[nodiscard]] int terminal_trouble() const { return terminal_.losses->trouble; }

 private:
  // Shared with writes under way: a stuck one may answer after the tee is gone.
  struct Losses {
    uint64_t bytes = 0;
    int trouble = 0;
  };
  struct Lane {
    Outlet outlet;
    double patience_s;
    bool may_skip;
    bool skipping = false;
    std::shared_ptr<Losses> losses = std::make_shared<Losses>();
  };
  void read_some();
  void read_until_empty();
  void offer(Lane&, std::string_view bytes);
  void show(std::string_view bytes);
  void hold_for_a_moment();
  void show_what_is_held();
  [[nodiscard]] bool must_wait(Lane&);
  void consider();
  void resume();
  void watch_outlets(const Loop::Callback& on_progress);

  Loop& loop_;
  Lane terminal_;
  Lane log_;
  std::function<void(std::string_view)> on_bytes_;
  Fd source_;
  bool paused_ = false;
  bool reading_ = false;  // a callback that runs the loop must not read into the same buffer
  bool given_up_ = false;
  Loop::TimerId retry_ = 0;
  std::optional<LineFilter> filter_;
  Loop::TimerId hold_ = 0;
  uint64_t held_line_ = 0;  // that hold_ is for
  bool at_line_start_ = true;
  double last_output_s_ = 0;
  uint64_t bytes_ = 0;
  std::string buffer_;
};

}  // namespace ezpz::supervise
