// A model, its data and its optimizer, step by step. C++17.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/checkpoint/manifest.h"
#include "train/loop/data.h"
#include "train/loop/metrics.h"
#include "train/loop/options.h"
#include "train/model/model.h"
#include "train/optim/optimizer.h"
#include "train/optim/schedule.h"
#include "train/parallel/comm.h"
#include "train/parallel/sharded.h"

namespace ezpz::train {

// The groups that a rank is in. All must outlive what uses them.
struct Mesh {
  Comm* data = nullptr;       // the ranks that have different samples
  Comm* shard = nullptr;      // those of them that share one copy of the model's parts (FSDP)
  Comm* replicate = nullptr;  // those of them that have the same part in other copies
  Comm* tensor = nullptr;     // the ranks that have the same samples and divide the matrices
};

// A part of the state, where it lies.
struct StatePart {
  Part part;
  float* data = nullptr;
  bool written_here = true;  // of several ranks that have it, this one saves it
};

class Trainer {
 public:
  Trainer(const TrainOptions&, const Mesh&, Data data);

  // One update, reported with the mean loss over all tokens of all ranks. All ranks learn whether
  // one was asked to stop. An error: this rank's data cannot be read.
  Result<StepReport> step(bool asked_to_stop = false);

  [[nodiscard]] long steps() const { return steps_; }  // done, since the very start
  [[nodiscard]] int64_t tokens_per_step() const;
  [[nodiscard]] Sharded& units() { return *units_; }      // of the model
  [[nodiscard]] Sharded& trained() { return *trained_; }  // the same, or the adapters

  // What a checkpoint holds: every trained parameter with its moments, whole and under names of
  // its own; this rank's parts of them; and the rest as JSON.
  [[nodiscard]] std::vector<TensorSpec> state_tensors();
  [[nodiscard]] std::vector<StatePart> state_parts();
  [[nodiscard]] std::string state() const;
  // Could the state be loaded here? Says what is different.
  [[nodiscard]] Status fits(const std::string& state) const;
  // After the parts have been filled.
  Status restore(const std::string& state);

 private:
  Status read_micro_batch(int64_t micro_step);
  void average_over_replicas();

  TrainOptions options_;
  Mesh mesh_;
  std::unique_ptr<Sharded> units_;
  std::unique_ptr<Sharded> adapters_;
  Sharded* trained_;
  Model model_;
  Optimizer optimizer_;
  Schedule schedule_;
  Data data_;
  BatchLayout layout_;
  std::vector<int64_t> sample_;
  std::vector<int32_t> tokens_, targets_;
  long steps_ = 0;
};

}  // namespace ezpz::train
