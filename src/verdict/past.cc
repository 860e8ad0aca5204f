#include "verdict/past.h"

#include <algorithm>
#include <cmath>

namespace ezpz::verdict {
namespace {

bool is_beyond(const std::optional<int64_t>& now, const std::optional<int64_t>& before) {
  return now && (!before || *now > *before);
}

bool is_beyond_first(const evidence::Progress& now, const std::vector<PastAttempt>& history,
                     size_t attempts) {
  std::optional<int64_t> step;
  std::optional<int64_t> checkpoint;
  for (size_t i = 0; i < attempts; ++i) {
    step = std::max(step, history[i].progress.last_step);
    checkpoint = std::max(checkpoint, history[i].progress.last_checkpoint);
  }
  return is_beyond(now.last_step, step) || is_beyond(now.last_checkpoint, checkpoint);
}

}  // namespace

bool made_progress(const evidence::Progress& now, const std::vector<PastAttempt>& history) {
  return is_beyond_first(now, history, history.size());
}

bool past_made_progress(const std::vector<PastAttempt>& history, size_t i) {
  return is_beyond_first(history[i].progress, history, i);
}

bool convicted_on_evidence(const PastAttempt& past) {
  return !past.verdict.culprits.empty() ||
         std::any_of(past.swapped_out.begin(), past.swapped_out.end(), [](const Culprit& culprit) {
           return culprit.provenance != Provenance::blind;
         });
}

bool near_same_step(const evidence::Progress& a, const evidence::Progress& b) {
  const std::optional<int64_t> a_step = a.reached();
  const std::optional<int64_t> b_step = b.reached();
  if (!a_step || !b_step) return !a_step && !b_step;
  const int64_t apart = std::llabs(*a_step - *b_step);
  // As far as from one progress line to the next tells nothing.
  return apart <= std::max<int64_t>({1, a.interval.value_or(1), b.interval.value_or(1)});
}

bool same_seats(const std::vector<int>& a, const std::vector<int>& b) {
  if (a.empty() || b.empty()) return false;
  return std::includes(a.begin(), a.end(), b.begin(), b.end()) ||
         std::includes(b.begin(), b.end(), a.begin(), a.end());
}

}  // namespace ezpz::verdict
