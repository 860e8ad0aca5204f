#include "train/data/random_source.h"

#include <algorithm>
#include <cmath>

#include "train/data/counter_rng.h"

namespace ezpz::train {
namespace {

constexpr uint64_t kMaxWords = 256;
constexpr uint64_t kFollowers = 4;
// Streams of the random numbers: which words follow which, and what each sample does.
constexpr uint64_t kChain = 1;
constexpr uint64_t kFirstSample = 16;

// 0, 1, 2, 3 with chances 1/2, 1/4, 1/8, 1/8.
uint64_t choose(uint64_t random) {
  const uint64_t eighth = random >> 61U;
  if (eighth < 4) return 0;
  if (eighth < 6) return 1;
  return eighth - 4;
}

}  // namespace

RandomSource::RandomSource(int64_t vocab_size, uint64_t seq_len, uint64_t seed)
    : vocab_size_(vocab_size),
      seq_len_(seq_len),
      seed_(seed),
      words_(std::min<uint64_t>(static_cast<uint64_t>(vocab_size), kMaxWords)) {}

double RandomSource::entropy_nats() { return 1.75 * std::log(2.0); }

Status RandomSource::read(uint64_t sample, int64_t* tokens) {
  const auto vocab = static_cast<uint64_t>(vocab_size_);
  uint64_t word = random_at(seed_, kFirstSample + sample, 0) % words_;
  for (uint64_t i = 0; i <= seq_len_; ++i) {
    tokens[i] = static_cast<int64_t>(word * vocab / words_);
    const uint64_t follower = choose(random_at(seed_, kFirstSample + sample, i + 1));
    word = random_at(seed_, kChain, word * kFollowers + follower) % words_;
  }
  return success();
}

}  // namespace ezpz::train
