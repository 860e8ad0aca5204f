// The units of a model, each sharded evenly over the ranks of a group (FSDP): a rank keeps its part
// of the parameters, gradients and moments. What a unit's computation needs is gathered before and
// dropped after; its gradient is reduced as soon as it is complete, while the next unit computes.
// With one rank nothing is copied. Frozen units have parameters only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/model/layout.h"
#include "train/parallel/comm.h"

namespace ezpz::train {

enum class Training { on, frozen };

class Sharded {
 public:
  // Sets the initial values. comm must outlive this.
  Sharded(std::vector<UnitLayout>, Comm* comm, uint64_t seed, Training training = Training::on);

  [[nodiscard]] bool frozen() const { return training_ == Training::frozen; }

  [[nodiscard]] const std::vector<UnitLayout>& units() const { return layouts_; }

  // The whole unit, flat; valid until drop(). Waits for the gather, and starts that of `next` (-1:
  // none), which must be the unit taken after this one.
  at::Tensor take(size_t unit, int next);
  void drop(size_t unit);
  // Where to put the gradient of the whole unit. When accumulates() is true it holds that of
  // earlier micro-steps and must be added to, otherwise all of it must be overwritten.
  at::Tensor gradient(size_t unit);
  [[nodiscard]] bool accumulates() const { return micro_step_ > 0 && comm_->size() == 1; }
  // The gradient of this micro-step is complete.
  void reduce(size_t unit);

  void begin_step() { micro_step_ = 0; }
  // Waits for every reduction of the micro-step.
  void end_micro_step();

  // This rank's parts.
  struct Shard {
    int64_t begin = 0;  // in the unit
    int64_t size = 0;   // the same on every rank: units are padded
    at::Tensor parameters;
    at::Tensor gradient;  // undefined when frozen
  };
  std::vector<Shard>& shards() { return shards_; }

 private:
  struct Slot {
    at::Tensor data;
    int unit = -1;
    Comm::Ticket ticket = 0;
    bool pending = false;
  };
  Slot& slot_of(std::vector<Slot>& slots, size_t unit);
  void start_gather(size_t unit);
  void finish_reduction(Slot& slot);

  std::vector<UnitLayout> layouts_;
  Comm* comm_;
  Training training_;
  std::vector<Shard> shards_;
  std::vector<Slot> gathered_;       // as UnitLayout::slot says
  std::vector<Slot> gradients_;      // the same
  std::vector<at::Tensor> reduced_;  // a slot's reduced gradient before it is added
  int micro_step_ = 0;
};

}  // namespace ezpz::train
