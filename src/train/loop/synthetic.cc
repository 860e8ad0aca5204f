#include "train/loop/synthetic.h"

#include <algorithm>

#include "train/kernels/random.h"

namespace ezpz::train {
namespace {

class RandomTokens : public TokenSource {
 public:
  RandomTokens(uint64_t seed, int64_t vocab)
      : key_(stream_key(seed, "random tokens")), vocab_(static_cast<uint64_t>(vocab)) {}
  void read(int64_t sample, int64_t seq, int32_t* tokens) const override {
    const uint64_t first = static_cast<uint64_t>(sample) * static_cast<uint64_t>(seq + 1);
    for (int64_t i = 0; i <= seq; ++i) {
      tokens[i] =
          static_cast<int32_t>(random_bits(key_, first + static_cast<uint64_t>(i)) % vocab_);
    }
  }

 private:
  uint64_t key_;
  uint64_t vocab_;
};

class Chain : public TokenSource {
 public:
  Chain(uint64_t seed, int64_t vocab)
      : key_(stream_key(seed, "chain")),
        next_(stream_key(seed, "chain's successors")),
        used_(static_cast<uint64_t>(std::min<int64_t>(vocab, 64))) {}
  void read(int64_t sample, int64_t seq, int32_t* tokens) const override {
    const uint64_t first = static_cast<uint64_t>(sample) * static_cast<uint64_t>(seq + 1);
    for (int64_t i = 0; i <= seq; ++i) {
      const uint64_t bits = random_bits(key_, first + static_cast<uint64_t>(i));
      const bool jumps = i == 0 || bits % 8 == 0;
      const uint64_t from =
          jumps ? bits >> 8 : random_bits(next_, static_cast<uint64_t>(tokens[i - 1]));
      tokens[i] = static_cast<int32_t>(from % used_);
    }
  }

 private:
  uint64_t key_;
  uint64_t next_;
  uint64_t used_;
};

}  // namespace

std::unique_ptr<TokenSource> make_synthetic(const std::string& kind, uint64_t seed, int64_t vocab) {
  if (kind == "chain") return std::make_unique<Chain>(seed, vocab);
  return std::make_unique<RandomTokens>(seed, vocab);
}

}  // namespace ezpz::train
