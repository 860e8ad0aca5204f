#include "supervise/tee.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace ezpz::supervise {
namespace {

constexpr size_t kRead_bytes = 256U << 10U;
constexpr int kReadsPerTurn = 8;  // then signals and timers get their turn
constexpr double kPausedCheck_s = 0.25;

}  // namespace

Tee::Tee(Loop& loop, Outlet terminal, Outlet log, std::function<void(std::string_view)> on_bytes)
    : loop_(loop),
      terminal_{terminal, kTerminalPatience_s, log.scribe != nullptr},
      log_{log, kLogPatience_s, true},
      on_bytes_(std::move(on_bytes)),
      buffer_(kRead_bytes, '\0') {
  if (terminal.scribe != nullptr && terminal.hide_nccl) {
    filter_.emplace([this](std::string_view bytes) { show(bytes); });
  }
}

Tee::~Tee() {
  loop_.cancel(hold_);
  if (source_ && !paused_) loop_.unwatch_read(source_.get());
  if (paused_) {
    loop_.cancel(retry_);
    watch_outlets({});
  }
}

void Tee::start(Fd source) {
  source_ = std::move(source);
  set_nonblocking(source_.get());
  last_output_s_ = monotonic_s();
  loop_.watch_read(source_.get(), [this] { read_some(); });
}

void Tee::mute_terminal() {
  if (terminal_.outlet.scribe != nullptr) terminal_.outlet.scribe->on_progress({});
  terminal_.outlet.scribe = nullptr;
  if (paused_) consider();
}

void Tee::read_some() {
  if (reading_) return;
  reading_ = true;
  read_until_empty();
  reading_ = false;
}

void Tee::read_until_empty() {
  for (int i = 0; i < kReadsPerTurn && source_ && !paused_; ++i) {
    const ssize_t n = read(source_.get(), buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      loop_.unwatch_read(source_.get());
      source_.reset();
      show_what_is_held();
      return;
    }
    const std::string_view bytes(buffer_.data(), static_cast<size_t>(n));
    bytes_ += bytes.size();
    last_output_s_ = monotonic_s();
    if (filter_) {
      filter_->feed(bytes);
      hold_for_a_moment();
    } else {
      show(bytes);
    }
    offer(log_, bytes);
    on_bytes_(bytes);
    consider();
  }
}

void Tee::show(std::string_view bytes) {
  if (bytes.empty()) return;
  at_line_start_ = bytes.back() == '\n';
  offer(terminal_, bytes);
}

// From the first byte of that line, not from the last: a line that drips in is not held for ever.
void Tee::hold_for_a_moment() {
  if (filter_->holds() && hold_ != 0 && held_line_ == filter_->held_line()) return;
  loop_.cancel(hold_);
  hold_ = 0;
  if (!filter_->holds()) return;
  held_line_ = filter_->held_line();
  hold_ = loop_.after(kHold_s, [this] {
    hold_ = 0;
    if (paused_) {
      hold_for_a_moment();  // the rest of the line may be in the pipe
    } else {
      show_what_is_held();
    }
  });
}

void Tee::show_what_is_held() {
  loop_.cancel(hold_);
  hold_ = 0;
  if (filter_) filter_->release();
}

void Tee::offer(Lane& lane, std::string_view bytes) {
  if (lane.outlet.scribe == nullptr) return;
  if (lane.skipping && lane.outlet.scribe->idle()) lane.skipping = false;  // it came back
  if (lane.skipping || !lane.outlet.scribe->alive()) {
    lane.losses->bytes += bytes.size();
    return;
  }
  const size_t size = bytes.size();
  lane.outlet.scribe->append(lane.outlet.file, bytes, [losses = lane.losses, size](int trouble) {
    if (trouble == 0) return;
    losses->bytes += size;
    losses->trouble = trouble;
  });
}

bool Tee::must_wait(Lane& lane) {
  if (lane.outlet.scribe == nullptr || lane.skipping) return false;
  if (lane.outlet.scribe->backlog_bytes() < kMaxBacklog_bytes) return false;
  if (lane.may_skip && lane.outlet.scribe->stuck_for_s() >= lane.patience_s) {
    lane.skipping = true;
    return false;
  }
  return true;
}

// Stops reading while an outlet has too much to write: memory stays flat, the job feels the pipe.
void Tee::consider() {
  const bool terminal_waits = must_wait(terminal_);
  const bool log_waits = must_wait(log_);
  if (!terminal_waits && !log_waits) {
    if (paused_) resume();
    return;
  }
  if (!paused_) {
    paused_ = true;
    if (source_) loop_.unwatch_read(source_.get());
  }
  loop_.cancel(retry_);
  retry_ = loop_.after(kPausedCheck_s, [this] { consider(); });
  watch_outlets([this] {
    if (paused_) consider();
  });
}

void Tee::watch_outlets(const Loop::Callback& on_progress) {
  for (const Lane* lane : {&terminal_, &log_}) {
    if (lane->outlet.scribe != nullptr) lane->outlet.scribe->on_progress(on_progress);
  }
}

void Tee::resume() {
  paused_ = false;
  loop_.cancel(retry_);
  watch_outlets({});
  last_output_s_ = monotonic_s();  // the silence was ours
  if (source_) loop_.watch_read(source_.get(), [this] { read_some(); });
}

void Tee::drain(double quiet_s) {
  bool expired = false;
  Loop::TimerId timer = 0;
  double begun_s = monotonic_s();
  double checked_s = begun_s;
  // Bytes that are there are never given up because the terminal is slow: a pause stops the clock.
  const std::function<void()> check = [&] {
    const double now_s = monotonic_s();
    if (paused_) begun_s += now_s - checked_s;
    checked_s = now_s;
    const bool quiet = now_s - std::max(last_output_s_, begun_s) >= quiet_s;
    expired = !paused_ && (quiet || now_s - begun_s >= kDrainLimit_s);
    if (!expired) timer = loop_.after(quiet_s / 2, check);
  };
  timer = loop_.after(quiet_s, check);
  loop_.run_until([&] { return !source_ || expired || given_up_; });
  loop_.cancel(timer);
  show_what_is_held();
  if (source_) {
    if (!paused_) loop_.unwatch_read(source_.get());
    source_.reset();
  }
}

}  // namespace ezpz::supervise
