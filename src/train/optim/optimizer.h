// Updates this rank's part of every unit in place: AdamW, or plain SGD (which hides no scale of the
// gradients and is what the tests of the parallelisms compare). C++17.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "train/parallel/comm.h"
#include "train/parallel/sharded.h"

namespace ezpz::train {

struct OptimizerOptions {
  enum class Kind { adamw, sgd } kind = Kind::adamw;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float eps = 1e-8F;
  float weight_decay = 0.1F;  // of matrices; vectors have none
  double clip = 1.0;          // largest global norm of the gradients; 0: never clipped
};

class Optimizer {
 public:
  // comm: the ranks that the units are sharded over; tp: those that divide the matrices.
  Optimizer(const OptimizerOptions&, Sharded* units, Comm* comm, Comm* tp);

  // One update with the gradients in the units; returns their global norm before clipping.
  double step(double lr);

  // Updates so far: the bias corrections go by it.
  [[nodiscard]] long steps() const { return steps_; }
  void resume_at(long steps) { steps_ = steps; }
  // AdamW's two, of a unit's shard; plain SGD has none.
  [[nodiscard]] bool has_moments() const { return !m_.empty(); }
  std::array<float*, 2> moments(size_t unit) {
    return {m_[unit].data_ptr<float>(), v_[unit].data_ptr<float>()};
  }

 private:
  struct Segment {
    size_t unit = 0;
    int64_t begin = 0;  // in the shard
    int64_t size = 0;
    bool decay = false;
    bool divided = false;  // over the tensor parallel ranks; what is whole is the same on each
    bool partial = false;  // its gradient is still a part of a sum over them
  };
  double gradient_norm();
  void find_segments();
  void complete_partial_gradients();

  OptimizerOptions options_;
  Sharded* units_;
  Comm* comm_;
  Comm* tp_;
  std::vector<Segment> segments_;
  std::vector<at::Tensor> m_, v_;
  long steps_ = 0;
};

}  // namespace ezpz::train
