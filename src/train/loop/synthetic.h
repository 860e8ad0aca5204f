// Token sequences made from a seed: sample i is the same for every rank and world size. Readable as
// C++17.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace ezpz::train {

class TokenSource {
 public:
  TokenSource() = default;
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;
  virtual ~TokenSource() = default;
  // Writes tokens 0 .. seq of a sample: the last is only a target.
  virtual void read(int64_t sample, int64_t seq, int32_t* tokens) const = 0;
};

// "random": uniform. "chain": a token is followed by one that it determines, seven times of eight;
// it uses few tokens of the vocabulary, so that a loss falls within some steps.
std::unique_ptr<TokenSource> make_synthetic(const std::string& kind, uint64_t seed, int64_t vocab);

}  // namespace ezpz::train
