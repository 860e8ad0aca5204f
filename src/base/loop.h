// The event loop: file descriptors, timers, child exits and signals, one thread, no polling sleeps.
// Kernel 4.18 nodes have no pidfd_open, so children are noticed through SIGCHLD on a signalfd.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/exit.h"

namespace ezpz {

class Loop {
 public:
  using Callback = std::function<void()>;
  using ChildCallback = std::function<void(Exit)>;
  using TimerId = uint64_t;

  // Blocks SIGCHLD and the signals later given to on_signal() in this thread; spawn() restores the
  // mask in children. One Loop per process.
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // fd must outlive the watch. Callbacks may add and remove watches freely, their own included.
  void watch_read(int fd, Callback on_readable);
  void watch_write(int fd, Callback on_writable);
  void unwatch_read(int fd);
  void unwatch_write(int fd);

  TimerId after(double seconds, Callback on_due);
  void cancel(TimerId);

  // Called once when the child has been reaped. Other children are left to whoever waits for them.
  void on_child(pid_t, ChildCallback);
  void forget_child(pid_t);
  // A signal that was inherited as ignored (nohup; a shell's background job) is left so: whoever
  // started us meant it.
  void on_signal(int signal, Callback);
  // The signal stays blocked, and what comes of it is dropped.
  void forget_signal(int signal);
  // Keeps these signals for later: they wait until on_signal() gives them a callback. Ignored ones
  // stay ignored.
  void hold_signals(const std::vector<int>& signals);
  // Children of others that end up ours (a subreaper's) are reaped when they end.
  void reap_strangers() { reap_strangers_ = true; }

  // Runs callbacks until done() is true; done() is asked after every batch. May be nested.
  void run_until(const std::function<bool()>& done);

 private:
  struct Watch {
    Callback read;
    Callback write;
  };
  struct Timer {
    double due_s;
    TimerId id;
    bool operator<(const Timer& other) const {
      return due_s != other.due_s ? due_s < other.due_s : id < other.id;
    }
  };
  void update_epoll(int fd, const Watch* before);
  void fire_due_timers();
  int next_timeout_ms() const;
  void read_signals();
  void reap_children();

  int epoll_fd_ = -1;
  int signal_fd_ = -1;
  std::map<int, Watch> watches_;
  std::set<Timer> timers_;
  std::map<TimerId, std::pair<double, Callback>> timer_callbacks_;
  std::map<pid_t, ChildCallback> children_;
  std::map<int, Callback> signals_;
  bool reap_strangers_ = false;
  TimerId next_timer_ = 1;
};

}  // namespace ezpz
