#include "base/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace ezpz {
namespace {

// Linux keeps an ignored signal while it is blocked: blocking it would bring it back to life.
bool is_ignored(int number) {
  struct sigaction current {};
  return sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

uint32_t interest(bool read, bool write) {
  return (read ? static_cast<uint32_t>(EPOLLIN) : 0U) |
         (write ? static_cast<uint32_t>(EPOLLOUT) : 0U);
}

}  // namespace

Loop::Loop() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // inherited as ignored, no child would ever be told of
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  signal_fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  watch_read(signal_fd_, [this] { read_signals(); });
}

Loop::~Loop() {
  close(signal_fd_);
  close(epoll_fd_);
}

void Loop::update_epoll(int fd, const Watch* before) {
  const auto found = watches_.find(fd);
  const bool read = found != watches_.end() && found->second.read != nullptr;
  const bool write = found != watches_.end() && found->second.write != nullptr;
  const bool existed = before != nullptr && (before->read != nullptr || before->write != nullptr);
  epoll_event event{};
  event.events = interest(read, write);
  event.data.fd = fd;
  if (!read && !write) {
    if (found != watches_.end()) watches_.erase(found);
    if (existed) epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  } else {
    epoll_ctl(epoll_fd_, existed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
  }
}

void Loop::watch_read(int fd, Callback on_readable) {
  const Watch before = watches_[fd];
  watches_[fd].read = std::move(on_readable);
  update_epoll(fd, &before);
}

void Loop::watch_write(int fd, Callback on_writable) {
  const Watch before = watches_[fd];
  watches_[fd].write = std::move(on_writable);
  update_epoll(fd, &before);
}

void Loop::unwatch_read(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  const Watch before = found->second;
  found->second.read = nullptr;
  update_epoll(fd, &before);
}

void Loop::unwatch_write(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  const Watch before = found->second;
  found->second.write = nullptr;
  update_epoll(fd, &before);
}

Loop::TimerId Loop::after(double seconds, Callback on_due) {
  const TimerId id = next_timer_++;
  const double due_s = monotonic_s() + seconds;
  timers_.insert({due_s, id});
  timer_callbacks_[id] = {due_s, std::move(on_due)};
  return id;
}

void Loop::cancel(TimerId id) {
  const auto found = timer_callbacks_.find(id);
  if (found == timer_callbacks_.end()) return;
  timers_.erase({found->second.first, id});
  timer_callbacks_.erase(found);
}

void Loop::on_child(pid_t pid, ChildCallback callback) { children_[pid] = std::move(callback); }
void Loop::forget_child(pid_t pid) { children_.erase(pid); }

void Loop::on_signal(int number, Callback callback) {
  if (is_ignored(number)) return;
  signals_[number] = std::move(callback);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const auto& [signal, unused] : signals_) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signalfd(signal_fd_, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

void Loop::forget_signal(int number) {
  if (signals_.contains(number)) signals_[number] = nullptr;
}

void Loop::hold_signals(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : signals) {
    if (!is_ignored(number)) sigaddset(&set, number);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

void Loop::run_until(const std::function<bool()>& done) {
  // A child may have ended between spawn() and on_child(), its SIGCHLD consumed by a nested run.
  reap_children();
  while (!done()) {
    epoll_event events[32];
    const int n = epoll_wait(epoll_fd_, events, 32, next_timeout_ms());
    if (n < 0 && errno != EINTR) return;
    for (int i = 0; i < n; ++i) {
      // Looked up anew each time: an earlier callback of this batch may have removed the watch.
      const int fd = events[i].data.fd;
      const uint32_t ready = events[i].events;
      const bool broken = (ready & (EPOLLERR | EPOLLHUP)) != 0;
      if (auto found = watches_.find(fd);
          found != watches_.end() && found->second.read && (broken || (ready & EPOLLIN) != 0)) {
        const Callback callback = found->second.read;
        callback();
      }
      if (auto found = watches_.find(fd);
          found != watches_.end() && found->second.write && (broken || (ready & EPOLLOUT) != 0)) {
        const Callback callback = found->second.write;
        callback();
      }
    }
    fire_due_timers();
  }
}

int Loop::next_timeout_ms() const {
  if (timers_.empty()) return -1;
  const double wait_s = timers_.begin()->due_s - monotonic_s();
  return static_cast<int>(std::clamp(std::ceil(wait_s * 1000), 0.0, 3600e3));
}

void Loop::fire_due_timers() {
  const double now_s = monotonic_s();
  while (!timers_.empty() && timers_.begin()->due_s <= now_s) {
    const TimerId id = timers_.begin()->id;
    timers_.erase(timers_.begin());
    const Callback callback = std::move(timer_callbacks_[id].second);
    timer_callbacks_.erase(id);
    callback();
  }
}

void Loop::read_signals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      reap_children();
    } else if (auto found = signals_.find(number); found != signals_.end() && found->second) {
      const Callback callback = found->second;
      callback();
    }
  }
}

void Loop::reap_children() {
  // Only pids with a callback are reaped: signals merge, so every one of them is asked.
  for (auto next = children_.begin(); next != children_.end();) {
    const pid_t pid = next->first;
    int status = 0;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0) {
      ++next;
      continue;
    }
    const ChildCallback callback = std::move(next->second);
    children_.erase(next);
    if (callback) callback(got == pid ? Exit::from_wait_status(status) : Exit{});
    next = children_.upper_bound(pid);  // the callback may have changed the map
  }
  while (reap_strangers_) {
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (children_.contains(ended.si_pid)) return;  // its SIGCHLD is on the way
    waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace ezpz
