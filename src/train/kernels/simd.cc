// Compiled several times, with EZPZ_ISA naming the instruction set. No template of the standard
// library is used here: a weak copy of one, compiled for AVX-512, could be the one that every other
// file calls on a processor without.
#include "train/kernels/simd.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define EZPZ_JOIN2(a, b) a##b
#define EZPZ_JOIN(a, b) EZPZ_JOIN2(a, b)
#define EZPZ_TEXT2(a) #a
#define EZPZ_TEXT(a) EZPZ_TEXT2(a)

namespace ezpz::train {
namespace {

// Below this many elements, starting the threads costs more than they save.
constexpr int64_t kWorthThreads = 16384;
constexpr int64_t kBlock = 1 << 16;  // elements a thread takes at once; fixes the order of sums

// Cephes' polynomial: two units in the last place over the range that does not overflow, and it
// vectorizes, which the library's does not without -ffast-math.
inline float exp_of(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float shifted = x * 1.44269504F + 12582912.0F;  // rounds to the nearest integer
  const float n = shifted - 12582912.0F;
  const float r = x - n * 0.693359375F + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const int32_t exponent = (static_cast<int32_t>(n) + 127) << 23;
  float power = 0;
  memcpy(&power, &exponent, sizeof power);
  return p * power;
}

void rmsnorm(float* y, float* inv_rms, const float* x, const float* w, int64_t rows, int64_t dim,
             float eps) {
#pragma omp parallel for if (rows * dim > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * dim;
    float* out = y + r * dim;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < dim; ++i) sum += in[i] * in[i];
    const float inv = 1.0F / sqrtf(sum / static_cast<float>(dim) + eps);
    inv_rms[r] = inv;
#pragma omp simd
    for (int64_t i = 0; i < dim; ++i) out[i] = in[i] * inv * w[i];
  }
}

void rmsnorm_backward(float* dx, float* dw, float* partial, const float* dy, const float* x,
                      const float* w, const float* inv_rms, int64_t rows, int64_t dim) {
  int threads = 1;
#pragma omp parallel if (rows * dim > kWorthThreads)
  {
#pragma omp single
    threads = omp_get_num_threads();
    float* mine = partial + omp_get_thread_num() * dim;
    if (dw != nullptr) memset(mine, 0, static_cast<size_t>(dim) * sizeof(float));
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; ++r) {
      const float* in = x + r * dim;
      const float* d = dy + r * dim;
      float* out = dx + r * dim;
      const float inv = inv_rms[r];
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (int64_t i = 0; i < dim; ++i) dot += d[i] * w[i] * in[i];
      const float back = dot * inv * inv * inv / static_cast<float>(dim);
#pragma omp simd
      for (int64_t i = 0; i < dim; ++i) out[i] += d[i] * w[i] * inv - in[i] * back;
      if (dw == nullptr) continue;
#pragma omp simd
      for (int64_t i = 0; i < dim; ++i) mine[i] += d[i] * in[i] * inv;
    }
  }
  if (dw == nullptr) return;
  for (int t = 0; t < threads; ++t) {
    const float* from = partial + t * dim;
#pragma omp simd
    for (int64_t i = 0; i < dim; ++i) dw[i] += from[i];
  }
}

void rope(float* x, int64_t rows, int64_t stride, int64_t heads, int64_t head_dim, const float* cos,
          const float* sin, int64_t seq, float direction) {
  const int64_t half = head_dim / 2;
#pragma omp parallel for if (rows * heads * head_dim > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) {
    const float* c = cos + (r % seq) * half;
    const float* s = sin + (r % seq) * half;
    for (int64_t h = 0; h < heads; ++h) {
      float* low = x + r * stride + h * head_dim;
      float* high = low + half;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = low[i];
        const float b = high[i];
        const float turn = direction * s[i];
        low[i] = a * c[i] - b * turn;
        high[i] = b * c[i] + a * turn;
      }
    }
  }
}

void swiglu(float* out, const float* gate_up, int64_t rows, int64_t hidden) {
#pragma omp parallel for if (rows * hidden > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) {
    const float* gate = gate_up + r * 2 * hidden;
    const float* up = gate + hidden;
    float* o = out + r * hidden;
#pragma omp simd
    for (int64_t i = 0; i < hidden; ++i) o[i] = gate[i] / (1.0F + exp_of(-gate[i])) * up[i];
  }
}

void swiglu_backward(float* gate_up, float* out, const float* d_out, int64_t rows, int64_t hidden) {
#pragma omp parallel for if (rows * hidden > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) {
    float* gate = gate_up + r * 2 * hidden;
    float* up = gate + hidden;
    float* o = out + r * hidden;
    const float* d = d_out + r * hidden;
#pragma omp simd
    for (int64_t i = 0; i < hidden; ++i) {
      const float g = gate[i];
      const float u = up[i];
      const float sigmoid = 1.0F / (1.0F + exp_of(-g));
      const float silu = g * sigmoid;
      const float given = d[i];
      o[i] = silu * u;
      up[i] = given * silu;
      gate[i] = given * u * (sigmoid + silu * (1.0F - sigmoid));
    }
  }
}

void cross_entropy(float* logits, float* losses, const int32_t* targets, float scale, int64_t rows,
                   int64_t vocab) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float* row = logits + r * vocab;
    float top = row[0];
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < vocab; ++i) top = row[i] > top ? row[i] : top;
    const float target = row[targets[r]] - top;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < vocab; ++i) {
      const float e = exp_of(row[i] - top);
      row[i] = e;
      sum += e;
    }
    losses[r] = logf(sum) - target;
    const float factor = scale / sum;
#pragma omp simd
    for (int64_t i = 0; i < vocab; ++i) row[i] *= factor;
    row[targets[r]] -= scale;
  }
}

void row_max(float* top, const float* x, int64_t rows, int64_t columns) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * columns;
    float most = row[0];
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < columns; ++i) most = row[i] > most ? row[i] : most;
    top[r] = most;
  }
}

void row_exp(float* x, float* sums, const float* top, int64_t rows, int64_t columns) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x + r * columns;
    const float most = top[r];
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < columns; ++i) {
      const float e = exp_of(row[i] - most);
      row[i] = e;
      sum += e;
    }
    sums[r] = sum;
  }
}

void row_scale(float* x, const float* factors, int64_t rows, int64_t columns) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x + r * columns;
    const float factor = factors[r];
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) row[i] *= factor;
  }
}

inline int64_t valid_columns(int64_t row, int64_t columns, int64_t first_valid) {
  const int64_t valid = first_valid + row;
  return valid < columns ? valid : columns;
}

void softmax_tile(float* scores, float* lse, float scale, int64_t rows, int64_t columns,
                  int64_t stride, int64_t first_valid) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * stride;
    const int64_t valid = valid_columns(r, columns, first_valid);
    float top = row[0];
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < valid; ++i) top = row[i] > top ? row[i] : top;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < valid; ++i) {
      const float e = exp_of((row[i] - top) * scale);
      row[i] = e;
      sum += e;
    }
    lse[r] = top * scale + logf(sum);
    const float inverse = 1.0F / sum;
#pragma omp simd
    for (int64_t i = 0; i < valid; ++i) row[i] *= inverse;
    for (int64_t i = valid; i < columns; ++i) row[i] = 0;
  }
}

void softmax_tile_backward(float* scores, float* d_probability, const float* lse,
                           const float* delta, float scale, int64_t rows, int64_t columns,
                           int64_t stride, int64_t first_valid) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * stride;
    float* d = d_probability + r * stride;
    const int64_t valid = valid_columns(r, columns, first_valid);
    const float shift = lse[r];
    const float mean = delta[r];
#pragma omp simd
    for (int64_t i = 0; i < valid; ++i) {
      const float p = exp_of(row[i] * scale - shift);
      row[i] = p;
      d[i] = p * (d[i] - mean) * scale;
    }
    for (int64_t i = valid; i < columns; ++i) {
      row[i] = 0;
      d[i] = 0;
    }
  }
}

void row_dots(float* delta, const float* a, const float* b, int64_t rows, int64_t columns,
              int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = a + r * stride;
    const float* y = b + r * stride;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < columns; ++i) sum += x[i] * y[i];
    delta[r] = sum;
  }
}

void adamw(float* p, float* m, float* v, const float* g, int64_t n, const AdamStep& step) {
  const AdamStep s = step;
  const float keep = 1.0F - s.lr * s.decay;
  const float rate = s.lr / s.correction1;
  const float inverse2 = 1.0F / s.correction2;
#pragma omp parallel for simd if (n > kWorthThreads) schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const float d = g[i] * s.gradient_scale;
    m[i] = s.beta1 * m[i] + (1.0F - s.beta1) * d;
    v[i] = s.beta2 * v[i] + (1.0F - s.beta2) * d * d;
    p[i] = p[i] * keep - rate * m[i] / (sqrtf(v[i] * inverse2) + s.eps);
  }
}

void add(float* y, const float* x, int64_t n) {
#pragma omp parallel for simd if (n > kWorthThreads) schedule(static)
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

void add_scaled(float* y, const float* x, float a, int64_t n) {
#pragma omp parallel for simd if (n > kWorthThreads) schedule(static)
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

void scale(float* x, float a, int64_t n) {
#pragma omp parallel for simd if (n > kWorthThreads) schedule(static)
  for (int64_t i = 0; i < n; ++i) x[i] *= a;
}

double square_sum(const float* x, int64_t n) {
  double total = 0;
  // Blocks and not threads fix the order, so that the sum does not depend on how many there are.
  constexpr int64_t kTogether = 64;
  double sums[kTogether];
  for (int64_t begin = 0; begin < n; begin += kTogether * kBlock) {
    const int64_t left = (n - begin + kBlock - 1) / kBlock;
    const int64_t blocks = left < kTogether ? left : kTogether;
#pragma omp parallel for if (blocks > 1)
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t from = begin + b * kBlock;
      const int64_t to = from + kBlock < n ? from + kBlock : n;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = from; i < to; ++i) sum += static_cast<double>(x[i]) * x[i];
      sums[b] = sum;
    }
    for (int64_t b = 0; b < blocks; ++b) total += sums[b];
  }
  return total;
}

}  // namespace

extern const Simd EZPZ_JOIN(kSimd_, EZPZ_ISA);
const Simd EZPZ_JOIN(kSimd_, EZPZ_ISA) = {EZPZ_TEXT(EZPZ_ISA),
                                          rmsnorm,
                                          rmsnorm_backward,
                                          rope,
                                          swiglu,
                                          swiglu_backward,
                                          cross_entropy,
                                          row_max,
                                          row_exp,
                                          row_scale,
                                          softmax_tile,
                                          softmax_tile_backward,
                                          row_dots,
                                          adamw,
                                          add,
                                          add_scaled,
                                          scale,
                                          square_sum};

}  // namespace ezpz::train
