#include "site/ask.h"

#include <memory>

#include "base/clock.h"
#include "site/pbs.h"

namespace ezpz::site {
namespace {

constexpr double kFirstPause_s = 0.25;  // and twice as long before each further try

struct Question : std::enable_shared_from_this<Question> {
  Loop* loop = nullptr;
  Argv argv;
  double give_up_s = 0;  // monotonic
  int tries = 0;
  double pause_s = kFirstPause_s;
  std::function<void(HelperResult)> done;

  void ask() {
    ++tries;
    start_helper(
        *loop, argv, give_up_s - monotonic_s(),
        [self = shared_from_this()](HelperResult result) { self->consider(std::move(result)); });
  }

  void consider(HelperResult result) {
    const bool passing = result.started && !result.timed_out && !result.usable() &&
                         pbs::is_passing_trouble(result.err);
    if (passing && tries < kMostTries && monotonic_s() + pause_s < give_up_s) {
      loop->after(pause_s, [self = shared_from_this()] { self->ask(); });
      pause_s *= 2;
      return;
    }
    if (passing && tries > 1) {
      result.trouble += " (asked " + std::to_string(tries) + " times)";
    }
    done(std::move(result));
  }
};

}  // namespace

void start_question(Loop& loop, const Argv& argv, double timeout_s,
                    std::function<void(HelperResult)> done) {
  auto question = std::make_shared<Question>();
  question->loop = &loop;
  question->argv = argv;
  question->give_up_s = monotonic_s() + timeout_s;
  question->done = std::move(done);
  question->ask();
}

HelperResult run_question(Loop& loop, const Argv& argv, double timeout_s) {
  auto result = std::make_shared<HelperResult>();
  auto ready = std::make_shared<bool>(false);
  start_question(loop, argv, timeout_s, [result, ready](HelperResult got) {
    *result = std::move(got);
    *ready = true;
  });
  loop.run_until([ready] { return *ready; });
  return std::move(*result);
}

}  // namespace ezpz::site
