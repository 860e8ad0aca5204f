// The arithmetic of training that is not a matrix product, over contiguous fp32 arrays. simd.cc is
// compiled once for each instruction set; simd() gives the widest that this processor has.
//
// Everything is parallel over rows with OpenMP and deterministic for a given number of threads:
// partial sums are added in the order of the threads. "Accumulated" arguments are added to.
// Readable as C++17.
#pragma once

#include <cstdint>

namespace ezpz::train {

// One decoupled-weight-decay Adam step. The corrections are 1 - beta^t.
struct AdamStep {
  float lr = 0;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float eps = 1e-8F;
  float decay = 0;
  float correction1 = 1;
  float correction2 = 1;
  float gradient_scale = 1;  // multiplies every gradient first: clipping
};

struct Simd {
  const char* name;

  // y = x / rms(x) * w, row by row; inv_rms gets 1 / sqrt(mean(x^2) + eps).
  void (*rmsnorm)(float* y, float* inv_rms, const float* x, const float* w, int64_t rows,
                  int64_t dim, float eps);
  // dx and dw are accumulated; partial is scratch of threads * dim. dw may be null (frozen).
  void (*rmsnorm_backward)(float* dx, float* dw, float* partial, const float* dy, const float* x,
                           const float* w, const float* inv_rms, int64_t rows, int64_t dim);

  // Rotates the halves of each head, in place; rows are stride apart, row r stands at position
  // r % seq. sin and cos are seq x head_dim/2. direction -1 turns back (the backward).
  void (*rope)(float* x, int64_t rows, int64_t stride, int64_t heads, int64_t head_dim,
               const float* cos, const float* sin, int64_t seq, float direction);

  // gate_up is rows x 2*hidden (gate first): out = silu(gate) * up.
  void (*swiglu)(float* out, const float* gate_up, int64_t rows, int64_t hidden);
  // Overwrites gate_up with its gradient, given that of out; out is computed again on the way.
  void (*swiglu_backward)(float* gate_up, float* out, const float* d_out, int64_t rows,
                          int64_t hidden);

  // logits becomes the gradient of scale * sum(loss); losses gets each row's.
  void (*cross_entropy)(float* logits, float* losses, const int32_t* targets, float scale,
                        int64_t rows, int64_t vocab);

  // The same in parts, for a row whose columns lie on several ranks.
  void (*row_max)(float* top, const float* x, int64_t rows, int64_t columns);
  void (*row_exp)(float* x, float* sums, const float* top, int64_t rows, int64_t columns);
  void (*row_scale)(float* x, const float* factors, int64_t rows, int64_t columns);

  // For one thread each, over a tile of attention scores; columns valid[r] and on are masked.
  // Exponentials of scale * score minus the row's maximum, divided by their sum; lse gets the
  // logarithm of the sum, in scaled scores.
  void (*softmax_tile)(float* scores, float* lse, float scale, int64_t rows, int64_t columns,
                       int64_t stride, int64_t first_valid);
  // scores becomes the probabilities again, d_probability the gradient of the (unscaled) scores.
  void (*softmax_tile_backward)(float* scores, float* d_probability, const float* lse,
                                const float* delta, float scale, int64_t rows, int64_t columns,
                                int64_t stride, int64_t first_valid);
  // delta[r] = sum over the head of a * b.
  void (*row_dots)(float* delta, const float* a, const float* b, int64_t rows, int64_t columns,
                   int64_t stride);

  void (*adamw)(float* p, float* m, float* v, const float* g, int64_t n, const AdamStep& step);
  void (*add)(float* y, const float* x, int64_t n);                  // y += x
  void (*add_scaled)(float* y, const float* x, float a, int64_t n);  // y += a * x
  void (*scale)(float* x, float a, int64_t n);
  double (*square_sum)(const float* x, int64_t n);
};

const Simd& simd();

}  // namespace ezpz::train
