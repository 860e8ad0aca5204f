// Causal attention with grouped queries, forward and backward, without ever holding seq x seq
// scores: a tile of queries at a time. Readable as C++17.
#pragma once

#include <cstdint>
#include <vector>

namespace ezpz::train {

struct AttentionShape {
  int64_t batch = 1;
  int64_t seq = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;

  [[nodiscard]] int64_t rows() const { return batch * seq; }
  [[nodiscard]] int64_t q_dim() const { return heads * head_dim; }
  [[nodiscard]] int64_t kv_dim() const { return kv_heads * head_dim; }
  [[nodiscard]] int64_t qkv_dim() const { return q_dim() + 2 * kv_dim(); }
};

// Scratch for every thread, kept between calls. Not for two calls at once.
class Attention {
 public:
  explicit Attention(AttentionShape);

  // qkv: rows x qkv_dim, a row holding q, k and v of a token. out: rows x q_dim. lse: batch x heads
  // x seq, what the backward needs.
  void forward(float* out, float* lse, const float* qkv);
  // d_qkv is overwritten.
  void backward(float* d_qkv, const float* d_out, const float* qkv, const float* out,
                const float* lse);

 private:
  AttentionShape shape_;
  int64_t tile_;
  std::vector<std::vector<float>> scratch_;  // a thread's: two tiles of scores, deltas
};

}  // namespace ezpz::train
