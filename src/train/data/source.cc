#include "train/data/source.h"

#include <algorithm>

namespace ezpz::train {

Batches::Batches(TokenSource& source, Sampler& sampler, BatchLayout layout, uint64_t seq_len)
    : source_(source), sampler_(sampler), layout_(layout), tokens_(seq_len + 1) {}

Status Batches::fill(uint64_t accum, uint64_t dp_rank, int64_t* inputs, int64_t* targets) {
  for (const uint64_t sample : sampler_.micro_batch(layout_, accum, dp_rank)) {
    if (Status read = source_.read(sample, tokens_.data()); !read) return read;
    inputs = std::copy(tokens_.begin(), tokens_.end() - 1, inputs);
    targets = std::copy(tokens_.begin() + 1, tokens_.end(), targets);
  }
  return success();
}

}  // namespace ezpz::train
