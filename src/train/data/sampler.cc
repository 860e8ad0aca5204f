#include "train/data/sampler.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "train/data/counter_rng.h"

namespace ezpz::train {
namespace {

constexpr int kRounds = 6;

uint64_t epoch_key(uint64_t seed, uint64_t epoch, uint64_t what) {
  return random_at(seed, what, epoch);
}

}  // namespace

uint64_t permute(uint64_t n, uint64_t key, uint64_t index) {
  if (n < 2) return 0;
  // A Feistel network over the smallest even number of bits that holds n; what falls outside is
  // sent through again, which ends because the network is a permutation (fewer than four times on
  // average).
  unsigned half_bits = 1;
  while (half_bits < 32 && (uint64_t{1} << (2 * half_bits)) < n) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  do {
    uint64_t left = index >> half_bits;
    uint64_t right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (random_at(key, static_cast<uint64_t>(round), right) & mask);
      left = right;
      right = next;
    }
    index = (left << half_bits) | right;
  } while (index >= n);
  return index;
}

std::string format_sampler_state(const SamplerState& state) {
  return dump(Json{{"seed", state.seed}, {"samples", state.samples}, {"position", state.position}});
}

Result<SamplerState> parse_sampler_state(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  SamplerState state;
  for (const auto& [key, to] : {std::pair{"seed", &state.seed},
                                {"samples", &state.samples},
                                {"position", &state.position}}) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_unsigned()) {
      return Error{std::string("the sampler's \"") + key + "\" is missing", "checkpoint", ""};
    }
    *to = json[key].get<uint64_t>();
  }
  return state;
}

Sampler::Sampler(std::vector<uint64_t> block_samples, uint64_t seed, Shuffle shuffle)
    : blocks_(std::move(block_samples)), seed_(seed), shuffle_(shuffle) {
  for (const uint64_t block : blocks_) {
    block_begin_.push_back(samples_);
    samples_ += block;
  }
}

uint64_t Sampler::block_in_epoch(uint64_t epoch, uint64_t k) const {
  if (shuffle_ != Shuffle::blocks) return k;
  return permute(blocks_.size(), epoch_key(seed_, epoch, 1), k);
}

uint64_t Sampler::block_at(uint64_t k) const {
  return block_in_epoch(k / blocks_.size(), k % blocks_.size());
}

uint64_t Sampler::block_ordinal(uint64_t index) const {
  const uint64_t epoch = index / samples_;
  uint64_t left = index % samples_;
  for (uint64_t k = 0; k < blocks_.size(); ++k) {
    const uint64_t size = blocks_[block_in_epoch(epoch, k)];
    if (left < size) return epoch * blocks_.size() + k;
    left -= size;
  }
  return (epoch + 1) * blocks_.size() - 1;  // not reached: the sizes add up to samples_
}

uint64_t Sampler::sample_at(uint64_t index) const {
  const uint64_t epoch = index / samples_;
  uint64_t within = index % samples_;
  if (shuffle_ == Shuffle::none) return within;
  if (shuffle_ == Shuffle::samples) return permute(samples_, epoch_key(seed_, epoch, 0), within);
  for (uint64_t k = 0; k < blocks_.size(); ++k) {
    const uint64_t block = block_in_epoch(epoch, k);
    if (within < blocks_[block]) {
      return block_begin_[block] +
             permute(blocks_[block], epoch_key(seed_, epoch, 2 + block), within);
    }
    within -= blocks_[block];
  }
  return 0;  // not reached
}

std::vector<uint64_t> Sampler::micro_batch(const BatchLayout& layout, uint64_t accum,
                                           uint64_t dp_rank) const {
  std::vector<uint64_t> result(layout.batch_size);
  const uint64_t first = position_ + (accum * layout.dp_ranks + dp_rank) * layout.batch_size;
  for (uint64_t i = 0; i < layout.batch_size; ++i) result[i] = sample_at(first + i);
  return result;
}

Status Sampler::restore(const SamplerState& state) {
  if (state.samples != samples_) {
    return Error{"the data had " + std::to_string(state.samples) + " samples and has " +
                     std::to_string(samples_) + " now",
                 "checkpoint", "give the data and the sequence length of the run that wrote it"};
  }
  if (state.seed != seed_) {
    return Error{"the data was shuffled with seed " + std::to_string(state.seed) + ", not " +
                     std::to_string(seed_),
                 "checkpoint", "give --seed " + std::to_string(state.seed)};
  }
  position_ = state.position;
  return success();
}

}  // namespace ezpz::train
