// What a token costs to train, and what a measured speed means. Pure.
//
// Only matrix products count (2 operations for each element of a matrix and token, as everywhere in
// the field), and attention counts as if it were dense: the convention of the PaLM paper (Chowdhery
// et al. 2022, appendix B) that published MFU figures follow. Readable as C++17.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/model.h"

namespace ezpz::bench {

struct Lora {
  int64_t rank = 0;  // 0: all weights are trained
  bool attention = false;
  bool feed_forward = false;
  [[nodiscard]] bool on() const { return rank > 0; }
  [[nodiscard]] bool adapts(Module module) const {
    return module == Module::attention ? attention : feed_forward;
  }
};

// FLOP for one token of a sequence of that length.
struct TokenCost {
  int64_t forward = 0;
  int64_t backward = 0;
  [[nodiscard]] int64_t total() const { return forward + backward; }
};
// With LoRA a frozen matrix costs its product and the gradient of its input, an adapter also the
// gradient of its weights. The embedding is frozen then, so nothing asks for the gradient of the
// first block's input: neither its query, key and value matrices nor their adapters compute it.
TokenCost token_cost(const ModelShape&, int64_t seq, const Lora& = {});

// Weights that are trained.
int64_t trainable_count(const ModelShape&, const Lora&);

// Elements of the gradients of one block's adapters that travel when they are sharded by rows over
// so many ranks: the r rows of A are padded to a multiple of the ranks, those of B are not.
int64_t lora_payload(const ModelShape&, const Lora&, int64_t ranks);

struct Speed {
  double tflops_per_gpu = 0;
  double mfu_percent = 0;  // of one GPU's peak
};
Speed speed_of(const TokenCost&, double tokens_per_s, int gpus, double peak_tflops);

// Bytes a rank holds when everything is sharded evenly over them: 4 for each number, as the
// reference trainer keeps them; AdamW keeps two moments of what is trained.
struct RankBytes {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
};
RankBytes rank_bytes(const ModelShape&, const Lora&, int64_t ranks);

}  // namespace ezpz::bench
