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

Sharded::Sharded(std::vector<UnitLayout> layouts, Comm* comm, uint64_t seed, Training training)
    : layouts_(std::move(layouts)), comm_(comm), training_(training) {
  const int64_t ranks = comm_->size();
  std::vector<int64_t> slot_sizes;
  for (const UnitLayout& unit : layouts_) {
    Shard shard;
    shard.size = shard_size(unit.elements, ranks);
    shard.begin = shard.size * comm_->rank();
    shard.parameters = at::empty({shard.size}, at::kFloat);
    if (training_ == Training::on) shard.gradient = at::zeros({shard.size}, at::kFloat);
    initialize(shard.parameters.data_ptr<float>(), unit, shard.begin, shard.begin + shard.size,
               seed);
    const auto slot = static_cast<size_t>(unit.slot);
    if (slot_sizes.size() <= slot) slot_sizes.resize(slot + 1);
    slot_sizes[slot] = std::max(slot_sizes[slot], shard.size * ranks);
    shards_.push_back(std::move(shard));
  }
  if (ranks == 1) return;
  for (const int64_t size : slot_sizes) {
    Slot slot;
    slot.data = at::zeros({size}, at::kFloat);
    gathered_.push_back(slot);
    if (training_ == Training::frozen) continue;
    slot.data = at::zeros({size}, at::kFloat);
    gradients_.push_back(slot);
    reduced_.push_back(at::empty({size / ranks}, at::kFloat));
  }
}

Sharded::Slot& Sharded::slot_of(std::vector<Slot>& slots, size_t unit) {
  return slots[static_cast<size_t>(layouts_[unit].slot)];
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
