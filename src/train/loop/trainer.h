// A model, its data and its optimizer, step by step. C++17.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/loop/metrics.h"
#include "train/loop/options.h"
#include "train/loop/synthetic.h"
#include "train/model/model.h"
#include "train/optim/optimizer.h"
#include "train/optim/schedule.h"
#include "train/parallel/comm.h"
#include "train/parallel/sharded.h"

namespace ezpz::train {

class Trainer {
 public:
  // data: the ranks that have different samples and share the model's parts (FSDP); tensor: those
  // that have the same samples and divide the matrices. Both must outlive this.
  Trainer(const TrainOptions&, Comm* data, Comm* tensor);

  // One update, reported with the mean loss over all tokens of all ranks. All ranks learn whether
  // one was asked to stop.
  StepReport step(bool asked_to_stop = false);

  [[nodiscard]] Sharded& units() { return units_; }
  [[nodiscard]] int64_t tokens_per_step() const;

 private:
  void read_micro_batch(int64_t micro_step);

  TrainOptions options_;
  Comm* comm_;
  Comm* tp_;
  Sharded units_;
  Model model_;
  Optimizer optimizer_;
  Schedule schedule_;
  std::unique_ptr<TokenSource> data_;
  std::vector<int32_t> sample_, tokens_, targets_;
  long steps_ = 0;
};

}  // namespace ezpz::train
