// A Llama-style decoder with its backward written out: no graph is recorded, every buffer is
// allocated once. C++17.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "bench/flops.h"
#include "bench/model.h"
#include "train/kernels/attention.h"
#include "train/model/adapters.h"
#include "train/parallel/sharded.h"

namespace ezpz::train {

// What the backward computes again instead of keeping it.
enum class Recompute {
  none,
  selective,  // the norms and the feed-forward net's inner products: the widest, cheap to have
              // again
  full,       // everything but a block's input
};

struct ModelOptions {
  bench::ModelShape shape;
  int64_t batch = 1;
  int64_t seq = 0;
  Recompute recompute = Recompute::none;
  float norm_eps = 1e-5F;
  // Of each pair of a head's dimensions; empty: those of the shape's rope_theta.
  std::vector<double> rope_frequencies;
  bench::Lora lora;        // off: every weight is trained
  float lora_scale = 1;    // of the adapters' products
  float lora_dropout = 0;  // of their inputs
  uint64_t seed = 0;       // of the dropout
};

class Model {
 public:
  // units must be those of unit_layouts(shape, tensor parallel rank and size), adapters those of
  // adapter_layouts(), with frozen units then, or null; they and the group of tensor parallel ranks
  // must outlive this.
  Model(const ModelOptions&, Sharded* units, Sharded* adapters, Comm* tp);

  // tokens and targets: batch x seq. Leaves in the units (or adapters) the gradient of scale * sum
  // of the losses, and returns that sum. first_sample: a number of the first sequence that no other
  // sequence of the run has; the next ones follow. Dropout goes by it.
  double forward_backward(const int32_t* tokens, const int32_t* targets, float scale,
                          int64_t first_sample = 0);

 private:
  struct Kept {
    at::Tensor x_TD, inv1_T, h1_TD, qkv, o_TD, lse, x2_TD, inv2_T, h2_TD, gate_up;
    at::Tensor u_qkv, u_o, u_gate_up;  // the adapters' inner products
  };
  struct Weights {
    at::Tensor norm1, qkv, o, norm2, gate_up, down;
  };
  struct Adapters {
    AdapterGroup qkv, o, gate_up, down;
  };
  struct Gradients;
  // Which input of a block's adapters.
  enum class Input { attention, output, feed_forward, down };
  [[nodiscard]] Weights weights_of(size_t block, const at::Tensor& flat) const;
  [[nodiscard]] Adapters adapters_of(size_t block, const at::Tensor& flat) const;
  [[nodiscard]] ops::Dropout dropout_of(size_t block, Input input) const;
  void allocate();
  void allocate_for_adapters();
  void fill_rope_tables();
  void attention_forward(size_t block, const Weights&, const Adapters&);
  void feed_forward_inner(size_t block, const Weights&, const Adapters&);
  void block_forward(size_t block, const at::Tensor& x_next_TD);
  void block_backward(size_t block);
  void attention_backward(size_t block, const Weights&, const Adapters&, const Gradients&);
  void feed_forward_backward(size_t block, const Weights&, const Adapters&, const Gradients&);
  double head(const int32_t* targets, float scale);
  // Leaves the gradient in the logits of some tokens, and their losses.
  void losses_of(const at::Tensor& logits, const at::Tensor& losses, const int32_t* targets,
                 float scale);
  // to += x * w^T and the adapter's, where with tensor parallelism each rank has a part of the sum.
  void add_row_parallel(const at::Tensor& to_TD, const at::Tensor& x, const at::Tensor& w,
                        const AdapterGroup&, const at::Tensor& u, const ops::Dropout&);
  void sum_over_tp(const at::Tensor& x);

  ModelOptions options_;
  Sharded* units_;
  Sharded* adapters_;  // null: none
  Comm* tp_;
  int64_t parts_;  // tensor parallel ranks; each has so many heads, and so much of F and V
  int64_t tokens_;
  int64_t chunk_;  // tokens whose logits are held at once
  int64_t first_sample_ = 0;
  Attention attention_;
  at::Tensor cos_, sin_;
  std::vector<Kept> kept_;
  at::Tensor x_last_TD_, inv_last_T_, h_last_TD_;
  at::Tensor inner_TF_, d_inner_TF_, dx_TD_, dh_TD_, d_qkv_, d_o_;
  at::Tensor logits_, losses_, partial_, row_top_, row_sums_;
  at::Tensor du_, u_down_, dropped_;  // the adapters'
};

}  // namespace ezpz::train
