#include "journal/journal.h"

#include <string.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "journal/event.h"

namespace ezpz::journal {

std::string format_event(double wall_s, std::string_view name, const Json& context) {
  const Json line = {{"time", iso8601(wall_s)}, {"name", std::string(name)}, {"context", context}};
  return dump(line) + "\n";
}

// Shared with the writes under way: a hung disk may answer when the journal is gone.
struct Journal::State : std::enable_shared_from_this<State> {
  State(Scribe& scribe_, std::string path_) : scribe(scribe_), path(std::move(path_)) {}

  Scribe& scribe;
  const std::string path;
  int file = 0;
  bool open = false;
  bool closed = false;   // the journal is gone: answers change nothing any more
  bool trying = false;   // the oldest kept event is on its way as a trial
  size_t in_flight = 0;  // handed over, not answered
  size_t failed = 0;     // writes refused since the last gap was recorded
  size_t dropped = 0;    // events lost from memory
  double trouble_since_s = 0;
  int open_trouble = 0;
  int last_trouble = 0;
  std::deque<std::string> kept;

  void add(std::string line) {
    if (kept.empty() && !trying) {
      hand_over(std::move(line));
      return;
    }
    // Behind the ones that failed, to keep the order.
    keep(std::move(line));
    try_again();
  }

  void keep(std::string line) {
    kept.push_back(std::move(line));
    if (kept.size() > kMaxKept) {
      kept.pop_front();
      ++dropped;
    }
  }

  void hand_over(std::string line) {
    write(std::move(line),
          [](State& state, std::string failed_line) { state.keep(std::move(failed_line)); });
  }

  // The oldest event alone: while the disk still fails, the rest need not travel in vain.
  void try_again() {
    if (kept.empty() || trying || in_flight > 0) return;
    trying = true;
    std::string oldest = std::move(kept.front());
    kept.pop_front();
    write(
        std::move(oldest),
        [](State& state, std::string failed_line) {
          state.trying = false;
          state.kept.push_front(std::move(failed_line));
        },
        [](State& state) {
          state.trying = false;
          state.tell_gap();
        });
  }

  void tell_gap() {
    std::deque<std::string> rest = std::move(kept);
    kept.clear();
    const Json gap = {{"since", iso8601(trouble_since_s)},
                      {"late_events", rest.size() + 1},
                      {"lost_events", dropped},
                      {"trouble", strerrordesc_np(last_trouble)}};
    failed = 0;
    dropped = 0;
    for (std::string& line : rest) hand_over(std::move(line));
    hand_over(format_event(wall_s(), "journal_gap", gap));
  }

  using OnFailure = void (*)(State&, std::string line);
  using OnSuccess = void (*)(State&);
  void write(std::string line, OnFailure on_failure, OnSuccess on_success = nullptr) {
    if (!open) {
      open = true;
      file = scribe.open_append(path, [self = shared_from_this()](int trouble) {
        self->open_trouble = trouble;
        if (trouble != 0) self->open = false;  // the next event tries again
      });
    }
    ++in_flight;
    const std::string_view bytes = line;
    scribe.append_whole(file, bytes,
                        [self = shared_from_this(), on_failure, on_success,
                         line = std::move(line)](int trouble) mutable {
                          --self->in_flight;
                          if (self->closed) return;
                          if (trouble == 0) {
                            if (on_success != nullptr) on_success(*self);
                            return;
                          }
                          if (self->failed == 0) self->trouble_since_s = wall_s();
                          ++self->failed;
                          self->last_trouble =
                              self->open_trouble != 0 ? self->open_trouble : trouble;
                          on_failure(*self, std::move(line));
                        });
  }
};

Journal::Journal(Loop& loop, Scribe& scribe, const std::string& path)
    : loop_(loop), state_(std::make_shared<State>(scribe, path)) {}

Journal::~Journal() { state_->closed = true; }

void Journal::note(std::string_view name, const Json& context) {
  state_->add(format_event(wall_s(), name, context));
}

void Journal::record(std::string_view name, const Json& context) {
  note(name, context);
  if (behind_ && state_->in_flight > 0) return;
  wait(kWait_s);
  behind_ = state_->in_flight > 0;
}

void Journal::wait(double at_most_s) {
  bool expired = false;
  const Loop::TimerId timer = loop_.after(at_most_s, [&expired] { expired = true; });
  loop_.run_until([&] { return state_->in_flight == 0 || expired; });
  loop_.cancel(timer);
}

void Journal::close(double at_most_s) {
  state_->try_again();
  wait(at_most_s);
}

size_t Journal::kept() const { return state_->kept.size() + state_->in_flight; }

}  // namespace ezpz::journal
