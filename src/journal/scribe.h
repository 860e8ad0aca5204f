// A writer that may get stuck without taking anything else along. Writes to a full, slow or hung
// file system (or a terminal that somebody paused) happen in a forked process fed by a pipe: a
// thread would not do, since a process with a thread in uninterruptible sleep can never end, and
// ezpz must be able to end when the disk under its log directory hangs.
//
// Nothing here blocks. What the pipe does not take waits in memory; the owner watches
// backlog_bytes() and stuck_for_s() and decides what to give up.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/loop.h"
#include "base/result.h"

namespace ezpz::journal {

class Scribe {
 public:
  // trouble: 0, or the errno of the operation; EPIPE when the scribe is gone.
  using OnDone = std::function<void(int trouble)>;

  explicit Scribe(Loop& loop) : loop_(loop) {}
  ~Scribe();
  Scribe(const Scribe&) = delete;
  Scribe& operator=(const Scribe&) = delete;

  enum class Terminal { no, yes };
  // Forks. name: as ps shows it. Only a scribe with the terminal can write to files 1 and 2. Call
  // early, while the process is small and has one thread.
  Status start(const char* name, Terminal terminal = Terminal::no);

  // A file to append to, created when missing; every result comes later through OnDone. The ids 1
  // and 2 stand for stdout and stderr.
  int open_append(const std::string& path, OnDone done = {});
  void append(int file, std::string_view bytes, OnDone done = {});
  // All of it or, as far as the file system lets it, nothing: after a failure the file is cut back.
  void append_whole(int file, std::string_view bytes, OnDone done = {});
  // Temp file and rename.
  void replace(const std::string& path, std::string_view content, OnDone done = {});
  void make_directories(const std::string& path, OnDone done = {});
  // One level; EEXIST when it is there already.
  void make_new_directory(const std::string& path, OnDone done = {});

  [[nodiscard]] bool alive() const { return static_cast<bool>(to_); }
  [[nodiscard]] size_t backlog_bytes() const { return backlog_bytes_; }
  [[nodiscard]] bool idle() const { return waiting_.empty(); }
  // Seconds since anything moved while something waits; 0 when idle.
  [[nodiscard]] double stuck_for_s() const;
  // Called whenever an operation was completed.
  void on_progress(Loop::Callback callback) { on_progress_ = std::move(callback); }

  // Runs the loop until everything handed over is done, at most so long. True when it is.
  bool settle(double at_most_s);
  // The same for as long as something moves, until patience_s pass without, or give_up() is true.
  bool settle_while_moving(double patience_s, const std::function<bool()>& give_up);

 private:
  void send(int op, int file, std::string_view bytes, OnDone done);
  void pump();
  void read_acknowledgements();
  void lose();

  Loop& loop_;
  pid_t pid_ = 0;
  Fd to_;    // operations
  Fd from_;  // acknowledgements
  std::deque<std::string> queue_;
  size_t queue_head_offset_ = 0;
  size_t backlog_bytes_ = 0;  // handed over and not yet acknowledged
  struct Waiting {
    size_t bytes;
    OnDone done;
  };
  std::deque<Waiting> waiting_;  // in order: the scribe answers in order
  double moved_s_ = 0;
  int next_file_ = 3;
  Loop::Callback on_progress_;
};

}  // namespace ezpz::journal
