#include "train/parallel/sharded.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "train/kernels/simd.h"

namespace ezpz::train {
namespace {

constexpr int64_t kAlignment = 16;  // elements: shards begin on a cache line

int64_t shard_size(int64_t elements, int64_t ranks) {
  const int64_t each = (elements + ranks - 1) / ranks;
  return (each + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Sharded::Sharded(std::vector<UnitLayout> layouts, Comm* comm, uint64_t seed)
    : layouts_(std::move(layouts)), comm_(comm) {
  const int64_t ranks = comm_->size();
  int64_t largest_block = 0;
  for (size_t u = 0; u < layouts_.size(); ++u) {
    Shard shard;
    shard.size = shard_size(layouts_[u].elements, ranks);
    shard.begin = shard.size * comm_->rank();
    shard.parameters = at::empty({shard.size}, at::kFloat);
    shard.gradient = at::zeros({shard.size}, at::kFloat);
    initialize(shard.parameters.data_ptr<float>(), layouts_[u], shard.begin,
               shard.begin + shard.size, seed);
    if (u > 0 && u + 1 < layouts_.size()) {
      largest_block = std::max(largest_block, shard.size * ranks);
    }
    shards_.push_back(std::move(shard));
  }
  if (ranks == 1) return;
  const int64_t sizes[] = {shards_.front().size * ranks, shards_.back().size * ranks, largest_block,
                           largest_block};
  for (const int64_t size : sizes) {
    Slot slot;
    slot.data = at::zeros({size}, at::kFloat);
    gathered_.push_back(slot);
    slot.data = at::zeros({size}, at::kFloat);
    gradients_.push_back(slot);
    reduced_.push_back(at::empty({size / ranks}, at::kFloat));
  }
}

Sharded::Slot& Sharded::slot_of(std::vector<Slot>& slots, size_t unit) {
  if (unit == 0) return slots[0];
  if (unit + 1 == layouts_.size()) return slots[1];
  return slots[2 + unit % 2];
}

void Sharded::start_gather(size_t unit) {
  Slot& slot = slot_of(gathered_, unit);
  if (slot.unit == static_cast<int>(unit)) return;
  Shard& shard = shards_[unit];
  slot.unit = static_cast<int>(unit);
  slot.ticket = comm_->all_gather(slot.data.data_ptr<float>(), shard.parameters.data_ptr<float>(),
                                  shard.size);
  slot.pending = true;
}

at::Tensor Sharded::take(size_t unit, int next) {
  if (comm_->size() == 1) return shards_[unit].parameters;
  start_gather(unit);
  Slot& slot = slot_of(gathered_, unit);
  if (slot.pending) {
    comm_->wait(slot.ticket);
    slot.pending = false;
  }
  if (next >= 0) start_gather(static_cast<size_t>(next));
  return slot.data.narrow(0, 0, shards_[unit].size * comm_->size());
}

void Sharded::drop(size_t unit) {
  if (comm_->size() == 1) return;
  slot_of(gathered_, unit).unit = -1;
}

at::Tensor Sharded::gradient(size_t unit) {
  if (comm_->size() == 1) return shards_[unit].gradient;
  Slot& slot = slot_of(gradients_, unit);
  if (slot.unit != static_cast<int>(unit)) {
    finish_reduction(slot);
    slot.unit = static_cast<int>(unit);
  }
  return slot.data.narrow(0, 0, shards_[unit].size * comm_->size());
}

void Sharded::reduce(size_t unit) {
  if (comm_->size() == 1) return;
  Slot& slot = slot_of(gradients_, unit);
  const auto index = static_cast<size_t>(&slot - gradients_.data());
  slot.ticket = comm_->reduce_scatter_mean(reduced_[index].data_ptr<float>(),
                                           slot.data.data_ptr<float>(), shards_[unit].size);
  slot.pending = true;
}

void Sharded::finish_reduction(Slot& slot) {
  if (slot.pending) {
    comm_->wait(slot.ticket);
    slot.pending = false;
    Shard& shard = shards_[static_cast<size_t>(slot.unit)];
    const auto index = static_cast<size_t>(&slot - gradients_.data());
    auto* gradient = shard.gradient.data_ptr<float>();
    const auto* reduced = reduced_[index].data_ptr<float>();
    if (micro_step_ == 0) {
      std::copy_n(reduced, shard.size, gradient);
    } else {
      simd().add(gradient, reduced, shard.size);
    }
  }
  slot.unit = -1;
}

void Sharded::end_micro_step() {
  for (Slot& slot : gradients_) finish_reduction(slot);
  // The parameters change at the end of a step: nothing gathered before may be used after.
  for (Slot& slot : gathered_) {
    if (slot.pending) comm_->wait(slot.ticket);
    slot.pending = false;
    slot.unit = -1;
  }
  ++micro_step_;
}

}  // namespace ezpz::train
