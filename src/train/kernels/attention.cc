#include "train/kernels/attention.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>

#include <algorithm>

#include "train/kernels/simd.h"

namespace ezpz::train {
namespace {

constexpr int64_t kTile = 64;  // queries; with seq 2048 a tile of scores is half a megabyte

int narrow(int64_t n) { return static_cast<int>(n); }

}  // namespace

Attention::Attention(AttentionShape shape)
    : shape_(shape), tile_(std::min(kTile, std::max<int64_t>(shape.seq, 1))) {}

void Attention::forward(float* out, float* lse, const float* qkv) {
  const AttentionShape s = shape_;
  const int64_t tiles = (s.seq + tile_ - 1) / tile_;
  const int64_t group = s.heads / s.kv_heads;
  const float scale = 1.0F / sqrtf(static_cast<float>(s.head_dim));
  const int64_t row = s.qkv_dim();
  const int64_t q_dim = s.q_dim();
  scratch_.resize(static_cast<size_t>(omp_get_max_threads()));
  // Late tiles are long: they go first, so that threads end together.
#pragma omp parallel for collapse(2) schedule(dynamic)
  for (int64_t t = 0; t < tiles; ++t) {
    for (int64_t bh = 0; bh < s.batch * s.heads; ++bh) {
      const int64_t b = bh / s.heads;
      const int64_t h = bh % s.heads;
      const int64_t first = (tiles - 1 - t) * tile_;
      const int64_t queries = std::min(tile_, s.seq - first);
      const int64_t keys = first + queries;
      auto& scratch = scratch_[static_cast<size_t>(omp_get_thread_num())];
      scratch.resize(static_cast<size_t>(2 * tile_ * s.seq + tile_));
      float* scores = scratch.data();
      const float* q = qkv + (b * s.seq + first) * row + h * s.head_dim;
      const float* k = qkv + b * s.seq * row + q_dim + (h / group) * s.head_dim;
      const float* v = k + s.kv_dim();
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, narrow(queries), narrow(keys),
                  narrow(s.head_dim), 1.0F, q, narrow(row), k, narrow(row), 0.0F, scores,
                  narrow(s.seq));
      simd().softmax_tile(scores, lse + (b * s.heads + h) * s.seq + first, scale, queries, keys,
                          s.seq, first + 1);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(queries), narrow(s.head_dim),
                  narrow(keys), 1.0F, scores, narrow(s.seq), v, narrow(row), 0.0F,
                  out + (b * s.seq + first) * q_dim + h * s.head_dim, narrow(q_dim));
    }
  }
}

void Attention::backward(float* d_qkv, const float* d_out, const float* qkv, const float* out,
                         const float* lse) {
  const AttentionShape s = shape_;
  const int64_t group = s.heads / s.kv_heads;
  const float scale = 1.0F / sqrtf(static_cast<float>(s.head_dim));
  const int64_t row = s.qkv_dim();
  const int64_t q_dim = s.q_dim();
  const int64_t dim = s.head_dim;
  scratch_.resize(static_cast<size_t>(omp_get_max_threads()));
  // A thread takes all query heads of a key head: nobody else adds to that head's k and v.
#pragma omp parallel for schedule(dynamic)
  for (int64_t bk = 0; bk < s.batch * s.kv_heads; ++bk) {
    const int64_t b = bk / s.kv_heads;
    const int64_t kv = bk % s.kv_heads;
    auto& scratch = scratch_[static_cast<size_t>(omp_get_thread_num())];
    scratch.resize(static_cast<size_t>(2 * tile_ * s.seq + tile_));
    float* p = scratch.data();
    float* dp = p + tile_ * s.seq;
    float* delta = dp + tile_ * s.seq;
    const float* k = qkv + b * s.seq * row + q_dim + kv * dim;
    const float* v = k + s.kv_dim();
    float* dk = d_qkv + b * s.seq * row + q_dim + kv * dim;
    float* dv = dk + s.kv_dim();
    for (int64_t r = 0; r < s.seq; ++r) {
      std::fill_n(dk + r * row, dim, 0.0F);
      std::fill_n(dv + r * row, dim, 0.0F);
    }
    for (int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      for (int64_t first = 0; first < s.seq; first += tile_) {
        const int64_t queries = std::min(tile_, s.seq - first);
        const int64_t keys = first + queries;
        const int64_t at = (b * s.seq + first) * row + h * dim;
        const int64_t out_at = (b * s.seq + first) * q_dim + h * dim;
        simd().row_dots(delta, d_out + out_at, out + out_at, queries, dim, q_dim);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, narrow(queries), narrow(keys),
                    narrow(dim), 1.0F, qkv + at, narrow(row), k, narrow(row), 0.0F, p,
                    narrow(s.seq));
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, narrow(queries), narrow(keys),
                    narrow(dim), 1.0F, d_out + out_at, narrow(q_dim), v, narrow(row), 0.0F, dp,
                    narrow(s.seq));
        simd().softmax_tile_backward(p, dp, lse + (b * s.heads + h) * s.seq + first, delta, scale,
                                     queries, keys, s.seq, first + 1);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(queries), narrow(dim),
                    narrow(keys), 1.0F, dp, narrow(s.seq), k, narrow(row), 0.0F, d_qkv + at,
                    narrow(row));
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, narrow(keys), narrow(dim),
                    narrow(queries), 1.0F, dp, narrow(s.seq), qkv + at, narrow(row), 1.0F, dk,
                    narrow(row));
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, narrow(keys), narrow(dim),
                    narrow(queries), 1.0F, p, narrow(s.seq), d_out + out_at, narrow(q_dim), 1.0F,
                    dv, narrow(row));
      }
    }
  }
}

}  // namespace ezpz::train
