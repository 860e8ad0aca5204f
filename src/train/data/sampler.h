// The order in which samples are seen: a function of (seed, epoch, index) alone. No list is kept,
// and neither the world size nor the batch size is part of it, so that a run that goes on with
// another number of ranks continues the same sequence where the old one stopped.
//
// With Shuffle::blocks the order is: blocks (the shards of a stream) in a shuffled order, and the
// samples within each shuffled. A whole block is used before the next, so it can be fetched ahead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::train {

// A permutation of 0 .. n-1, another for each key, in constant memory. index < n.
uint64_t permute(uint64_t n, uint64_t key, uint64_t index);

enum class Shuffle { none, samples, blocks };

// What a checkpoint keeps.
struct SamplerState {
  uint64_t seed = 0;
  uint64_t samples = 0;   // in one epoch
  uint64_t position = 0;  // samples consumed by all ranks together since the start
};
std::string format_sampler_state(const SamplerState&);  // JSON
Result<SamplerState> parse_sampler_state(std::string_view json);

// How a step's samples are dealt out. Micro batch a of rank r takes the samples
// position + (a * dp_ranks + r) * batch_size + (0 .. batch_size-1), so a step is the same set of
// samples for any dp_ranks as long as the product stays.
struct BatchLayout {
  uint64_t batch_size = 1;  // per rank and micro batch
  uint64_t grad_accum = 1;
  uint64_t dp_ranks = 1;
  [[nodiscard]] uint64_t samples_per_step() const { return batch_size * grad_accum * dp_ranks; }
};

class Sampler {
 public:
  // block_samples: how many samples each block has; one block when there are none. Their sum is at
  // least 1.
  Sampler(std::vector<uint64_t> block_samples, uint64_t seed, Shuffle shuffle);

  [[nodiscard]] uint64_t samples() const { return samples_; }
  [[nodiscard]] uint64_t position() const { return position_; }
  [[nodiscard]] uint64_t epoch() const { return position_ / samples_; }

  // Which sample is the index-th of the whole sequence, all epochs counted.
  [[nodiscard]] uint64_t sample_at(uint64_t index) const;
  // Which block is the k-th to be used, all epochs counted, and which ordinal a position is in.
  // Without Shuffle::blocks blocks are used in their order.
  [[nodiscard]] uint64_t block_at(uint64_t k) const;
  [[nodiscard]] uint64_t block_ordinal(uint64_t index) const;

  // The samples of one rank's micro batch of the step at position().
  [[nodiscard]] std::vector<uint64_t> micro_batch(const BatchLayout&, uint64_t accum,
                                                  uint64_t dp_rank) const;
  // Once a step, after all of its micro batches: on every rank.
  void advance(uint64_t samples) { position_ += samples; }

  [[nodiscard]] SamplerState state() const { return {seed_, samples_, position_}; }
  // An error when the state is of another seed or of data of another size: the sequence would not
  // go on where it stopped.
  Status restore(const SamplerState&);

 private:
  [[nodiscard]] uint64_t block_in_epoch(uint64_t epoch, uint64_t k) const;

  std::vector<uint64_t> blocks_;
  std::vector<uint64_t> block_begin_;  // first sample of each
  uint64_t samples_ = 0;
  uint64_t seed_;
  Shuffle shuffle_;
  uint64_t position_ = 0;
};

}  // namespace ezpz::train
