// Where samples come from. A sample is seq_len + 1 tokens: the inputs are all but the last, the
// targets all but the first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/sampler.h"

namespace ezpz::train {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Samples per block, for Sampler; a source whose blocks come one after another (a stream) says so
  // by natural_shuffle().
  [[nodiscard]] virtual std::vector<uint64_t> block_samples() const = 0;
  [[nodiscard]] virtual Shuffle natural_shuffle() const { return Shuffle::samples; }
  // Every token is below it.
  [[nodiscard]] virtual int64_t vocab_size() const = 0;
  // seq_len + 1 tokens. From one thread at a time.
  virtual Status read(uint64_t sample, int64_t* tokens) = 0;
};

// A source and its sampler, dealt out.
class Batches {
 public:
  Batches(TokenSource& source, Sampler& sampler, BatchLayout layout, uint64_t seq_len);
  // The micro batch of the step at the sampler's position: inputs and targets are
  // [batch_size, seq_len], row-major.
  Status fill(uint64_t accum, uint64_t dp_rank, int64_t* inputs, int64_t* targets);
  void end_step() { sampler_.advance(layout_.samples_per_step()); }

 private:
  TokenSource& source_;
  Sampler& sampler_;
  BatchLayout layout_;
  std::vector<int64_t> tokens_;
};

}  // namespace ezpz::train
