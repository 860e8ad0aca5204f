#include "workload/waiting.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace toy {
namespace {

constexpr int caught_signals[] = {SIGTERM, SIGUSR1, SIGUSR2};

OnSignal on_signal;                        // NOLINT: signals are global
sigset_t mask_while_waiting;               // NOLINT
volatile sig_atomic_t pending[NSIG] = {};  // NOLINT

void note(int signal) { pending[signal] = 1; }

void deliver_pending() {
  for (const int signal : caught_signals) {
    if (pending[signal] == 0) continue;
    pending[signal] = 0;
    on_signal(signal);
  }
}

// One ppoll, signals unblocked only inside it; true when fd is ready.
bool poll_once(pollfd* fds, nfds_t count, double deadline_s) {
  timespec left{};
  const timespec* timeout = nullptr;
  if (std::isfinite(deadline_s)) {
    const double seconds = std::max(0.0, deadline_s - now_s());
    left.tv_sec = static_cast<time_t>(seconds);
    left.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
    timeout = &left;
  }
  const int ready = ppoll(fds, count, timeout, &mask_while_waiting);
  deliver_pending();
  return ready > 0;
}

}  // namespace

void catch_signals(OnSignal callback) {
  on_signal = std::move(callback);
  sigset_t blocked;
  sigemptyset(&blocked);
  struct sigaction action {};
  action.sa_handler = note;
  for (const int signal : caught_signals) {
    sigaddset(&blocked, signal);
    sigaction(signal, &action, nullptr);
  }
  sigprocmask(SIG_BLOCK, &blocked, &mask_while_waiting);
  for (const int signal : caught_signals) sigdelset(&mask_while_waiting, signal);
}

double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double wall_s() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Wait wait_for(int fd, Until until, double deadline_s) {
  pollfd watched{fd, static_cast<short>(until == Until::readable ? POLLIN : POLLOUT), 0};
  do {
    if (poll_once(&watched, 1, deadline_s)) return Wait::ready;
  } while (now_s() < deadline_s);
  return Wait::timed_out;
}

void sleep_until(double deadline_s) {
  do {
    poll_once(nullptr, 0, deadline_s);
  } while (now_s() < deadline_s);
}

void sleep_forever() {
  for (;;) poll_once(nullptr, 0, std::numeric_limits<double>::infinity());
}

}  // namespace toy
