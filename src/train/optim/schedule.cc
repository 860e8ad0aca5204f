#include "train/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace ezpz::train {

double Schedule::at(long step) const {
  if (step < warmup_steps) {
    return lr * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  const long falling = std::max(1L, steps - warmup_steps);
  const double share =
      std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(falling));
  constexpr double kPi = 3.14159265358979323846;
  return min_lr + (lr - min_lr) * 0.5 * (1.0 + std::cos(kPi * share));
}

}  // namespace ezpz::train
