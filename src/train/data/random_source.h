// Random text that can be learned: a fixed Markov chain. Each of up to 256 words (spread over the
// whole vocabulary, so that every part of a split vocabulary is used) is followed by one of four
// others with chances 1/2, 1/4, 1/8, 1/8. A model falls from ln(vocab) through ln(words) towards
// entropy_nats(). Sample i is a function of (seed, i) alone.
#pragma once

#include <cstdint>

#include "train/data/source.h"

namespace ezpz::train {

class RandomSource : public TokenSource {
 public:
  RandomSource(int64_t vocab_size, uint64_t seq_len, uint64_t seed);
  [[nodiscard]] std::vector<uint64_t> block_samples() const override { return {kSamples}; }
  [[nodiscard]] int64_t vocab_size() const override { return vocab_size_; }
  Status read(uint64_t sample, int64_t* tokens) override;
  // The least loss there is, but for a sample's first word and for words that chance made equal.
  static double entropy_nats();

 private:
  static constexpr uint64_t kSamples = uint64_t{1} << 40U;
  int64_t vocab_size_;
  uint64_t seq_len_;
  uint64_t seed_;
  uint64_t words_;
};

}  // namespace ezpz::train
