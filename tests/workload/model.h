// The "model": a handful of weights that every rank pulls in its own direction. The update is the
// same arithmetic in the same order on every run, so the loss printed at a step is the same whether
// the run was broken and resumed or not.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace toy {

inline constexpr int width = 8;
using Vector = std::array<double, width>;

struct Model {
  int64_t step = 0;
  Vector weights{1, 1, 1, 1, 1, 1, 1, 1};

  // This rank's share of the gradient of the step to come.
  [[nodiscard]] Vector gradient(int rank, int world_size) const;
  // The sum of all shares takes the model one step on.
  void apply(const Vector& summed);
  [[nodiscard]] double loss() const;

  // Bit-exact text with a checksum, and back; false when the text is not a whole checkpoint.
  [[nodiscard]] std::string to_text() const;
  static bool from_text(const std::string& text, Model* out);
};

}  // namespace toy
