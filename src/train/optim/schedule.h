// The learning rate of a step: linear warm-up from 0, then a cosine down to a floor. Readable as
// C++17.
#pragma once

namespace ezpz::train {

struct Schedule {
  double lr = 3e-4;
  double min_lr = 0;
  long warmup_steps = 0;
  long steps = 1;
  // Of the step-th update, counted from 0.
  [[nodiscard]] double at(long step) const;
};

}  // namespace ezpz::train
