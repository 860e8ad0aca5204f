#include "train/model/model.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "train/kernels/simd.h"
#include "train/model/ops.h"

namespace ezpz::train {
namespace {

// The head's logits are held for so many bytes of tokens at a time.
constexpr int64_t kLogitBytes = 128 << 20;

AttentionShape attention_shape(const ModelOptions& o, int64_t parts) {
  return {o.batch, o.seq, o.shape.heads / parts, o.shape.kv_heads / parts, o.shape.head_dim()};
}

// `rows` rows of a flat unit, from a parameter on: matrices that stand together are one.
at::Tensor matrix_at(const at::Tensor& flat, const Parameter& first, int64_t rows) {
  return flat.narrow(0, first.offset, rows * first.columns).view({rows, first.columns});
}

at::Tensor vector_of(const at::Tensor& flat, const Parameter& p) {
  return flat.narrow(0, p.offset, p.rows);
}

}  // namespace

Model::Model(const ModelOptions& options, Sharded* units, Comm* tp)
    : options_(options),
      units_(units),
      tp_(tp),
      parts_(tp->size()),
      tokens_(options.batch * options.seq),
      chunk_(0),
      attention_(attention_shape(options, tp->size())) {
  const int64_t fitting = kLogitBytes / 4 / (options_.shape.vocab / parts_);
  chunk_ = std::min(tokens_, std::max<int64_t>(fitting, 16));
  allocate();
  fill_rope_tables();
}

void Model::allocate() {
  const auto& s = options_.shape;
  const auto tensor = [](int64_t rows, int64_t columns) {
    return at::empty({rows, columns}, at::kFloat);
  };
  const auto vector = [](int64_t n) { return at::empty({n}, at::kFloat); };
  const int64_t qkv_dim = attention_shape(options_, parts_).qkv_dim();
  const int64_t q_dim = s.dim / parts_;
  const int64_t hidden = s.hidden / parts_;
  Kept shared;
  for (int64_t i = 0; i < s.layers; ++i) {
    const bool all = options_.recompute == Recompute::none || i == 0;
    const bool some = options_.recompute != Recompute::full || i == 0;
    Kept k = shared;
    k.x_TD = tensor(tokens_, s.dim);
    if (some) {
      k.inv1_T = vector(tokens_);
      k.qkv = tensor(tokens_, qkv_dim);
      k.o_TD = tensor(tokens_, q_dim);
      k.lse = vector(tokens_ * s.heads / parts_);
      k.x2_TD = tensor(tokens_, s.dim);
      k.inv2_T = vector(tokens_);
    }
    if (all) {
      k.h1_TD = tensor(tokens_, s.dim);
      k.h2_TD = tensor(tokens_, s.dim);
      k.gate_up = tensor(tokens_, 2 * hidden);
    }
    if (i == 0) shared = k;
    kept_.push_back(std::move(k));
  }
  x_last_TD_ = tensor(tokens_, s.dim);
  inv_last_T_ = vector(tokens_);
  h_last_TD_ = tensor(tokens_, s.dim);
  inner_TF_ = tensor(tokens_, hidden);
  d_inner_TF_ = tensor(tokens_, hidden);
  d_o_ = tensor(tokens_, q_dim);
  dx_TD_ = tensor(tokens_, s.dim);
  dh_TD_ = tensor(tokens_, s.dim);
  d_qkv_ = tensor(tokens_, qkv_dim);
  logits_ = tensor(chunk_, s.vocab / parts_);
  row_top_ = vector(chunk_);
  row_sums_ = vector(2 * chunk_);
  losses_ = vector(tokens_);
  partial_ = tensor(threads(), s.dim);
}

void Model::fill_rope_tables() {
  const int64_t half = options_.shape.head_dim() / 2;
  cos_ = at::empty({options_.seq, half}, at::kFloat);
  sin_ = at::empty({options_.seq, half}, at::kFloat);
  for (int64_t i = 0; i < half; ++i) {
    const double turn =
        std::pow(options_.shape.rope_theta,
                 -static_cast<double>(2 * i) / static_cast<double>(options_.shape.head_dim()));
    for (int64_t position = 0; position < options_.seq; ++position) {
      const double angle = turn * static_cast<double>(position);
      cos_.data_ptr<float>()[position * half + i] = static_cast<float>(std::cos(angle));
      sin_.data_ptr<float>()[position * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

Model::Weights Model::weights_of(size_t block, const at::Tensor& flat) const {
  // The order of unit_layouts(): norm, q, k, v, o, norm, gate, up, down.
  const auto& p = units_->units()[block + 1].parameters;
  Weights w;
  w.norm1 = vector_of(flat, p[0]);
  w.qkv = matrix_at(flat, p[1], p[1].rows + p[2].rows + p[3].rows);
  w.o = matrix_at(flat, p[4], p[4].rows);
  w.norm2 = vector_of(flat, p[5]);
  w.gate_up = matrix_at(flat, p[6], p[6].rows + p[7].rows);
  w.down = matrix_at(flat, p[8], p[8].rows);
  return w;
}

void Model::sum_over_tp(const at::Tensor& x) {
  if (parts_ > 1) tp_->wait(tp_->all_reduce_sum(x.data_ptr<float>(), x.numel()));
}

void Model::add_row_parallel(const at::Tensor& to_TD, const at::Tensor& x, const at::Tensor& w) {
  if (parts_ == 1) {
    ops::linear(to_TD, x, w, Sum::accumulate);
    return;
  }
  ops::linear(dh_TD_, x, w);
  sum_over_tp(dh_TD_);
  ops::add(to_TD, dh_TD_);
}

void Model::attention_forward(const Weights& w, Kept& k) {
  const auto& s = options_.shape;
  ops::rmsnorm(k.h1_TD, k.inv1_T, k.x_TD, w.norm1, options_.norm_eps);
  ops::linear(k.qkv, k.h1_TD, w.qkv);
  ops::rope(k.qkv, (s.heads + s.kv_heads) / parts_, s.head_dim(), cos_, sin_, ops::Turn::forward);
  ops::attention(attention_, k.o_TD, k.lse, k.qkv);
  ops::copy(k.x2_TD, k.x_TD);
  add_row_parallel(k.x2_TD, k.o_TD, w.o);
}

void Model::feed_forward_inner(const Weights& w, Kept& k) {
  ops::rmsnorm(k.h2_TD, k.inv2_T, k.x2_TD, w.norm2, options_.norm_eps);
  ops::linear(k.gate_up, k.h2_TD, w.gate_up);
}

void Model::block_forward(size_t block, const at::Tensor& x_next_TD) {
  const size_t unit = block + 1;
  const Weights w = weights_of(block, units_->take(unit, static_cast<int>(unit) + 1));
  Kept& k = kept_[block];
  attention_forward(w, k);
  feed_forward_inner(w, k);
  ops::swiglu(inner_TF_, k.gate_up);
  ops::copy(x_next_TD, k.x2_TD);
  add_row_parallel(x_next_TD, inner_TF_, w.down);
  units_->drop(unit);
}

// With tensor parallelism each rank has the logits of its part of the vocabulary.
void Model::losses_of(const at::Tensor& logits, const at::Tensor& losses, const int32_t* targets,
                      float scale) {
  const int64_t rows = logits.size(0);
  const int64_t columns = logits.size(1);
  auto* x = logits.data_ptr<float>();
  auto* loss = losses.data_ptr<float>();
  if (parts_ == 1) {
    simd().cross_entropy(x, loss, targets, scale, rows, columns);
    return;
  }
  auto* top = row_top_.data_ptr<float>();
  auto* sums = row_sums_.data_ptr<float>();
  auto* wanted = sums + rows;
  const auto own = [&](int64_t row) -> float* {
    const int64_t column = targets[row] - columns * tp_->rank();
    return column >= 0 && column < columns ? x + row * columns + column : nullptr;
  };
  simd().row_max(top, x, rows, columns);
  tp_->wait(tp_->all_reduce_max(top, rows));
  for (int64_t r = 0; r < rows; ++r) wanted[r] = own(r) != nullptr ? *own(r) - top[r] : 0;
  simd().row_exp(x, sums, top, rows, columns);
  tp_->wait(tp_->all_reduce_sum(sums, 2 * rows));
  for (int64_t r = 0; r < rows; ++r) {
    loss[r] = std::log(sums[r]) - wanted[r];
    sums[r] = scale / sums[r];
  }
  simd().row_scale(x, sums, rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    if (float* logit = own(r)) *logit -= scale;
  }
}

double Model::head(const int32_t* targets, float scale) {
  const size_t unit = units_->units().size() - 1;
  const bool tied = options_.shape.tied;
  const auto& p = units_->units()[unit].parameters;
  const int last_block = static_cast<int>(unit) - 1;
  const at::Tensor flat = units_->take(unit, last_block > 0 ? last_block : -1);
  const at::Tensor d_flat = units_->gradient(unit);
  const Sum sum = units_->accumulates() ? Sum::accumulate : Sum::overwrite;
  const at::Tensor norm = vector_of(flat, p[0]);
  at::Tensor w_VD;
  at::Tensor dw_VD;
  if (tied) {
    const Parameter& embedding = units_->units()[0].parameters[0];
    w_VD = matrix_at(units_->take(0, -1), embedding, embedding.rows);
    dw_VD = matrix_at(units_->gradient(0), embedding, embedding.rows);
  } else {
    w_VD = matrix_at(flat, p[1], p[1].rows);
    dw_VD = matrix_at(d_flat, p[1], p[1].rows);
  }
  ops::rmsnorm(h_last_TD_, inv_last_T_, x_last_TD_, norm, options_.norm_eps);
  Sum chunk_sum = sum;
  for (int64_t first = 0; first < tokens_; first += chunk_) {
    const int64_t rows = std::min(chunk_, tokens_ - first);
    const at::Tensor h = h_last_TD_.narrow(0, first, rows);
    const at::Tensor logits = logits_.narrow(0, 0, rows);
    ops::linear(logits, h, w_VD);
    losses_of(logits, losses_.narrow(0, first, rows), targets + first, scale);
    ops::linear_input_gradient(dh_TD_.narrow(0, first, rows), logits, w_VD);
    ops::linear_weight_gradient(dw_VD, logits, h, chunk_sum);
    chunk_sum = Sum::accumulate;
  }
  sum_over_tp(dh_TD_);
  ops::zero(dx_TD_);
  ops::rmsnorm_backward(dx_TD_, vector_of(d_flat, p[0]), sum, partial_, dh_TD_, x_last_TD_, norm,
                        inv_last_T_);
  units_->drop(unit);
  units_->reduce(unit);
  double loss = 0;
  for (int64_t t = 0; t < tokens_; ++t) loss += losses_.data_ptr<float>()[t];
  return loss;
}

void Model::block_backward(size_t block) {
  const auto& s = options_.shape;
  const size_t unit = block + 1;
  const Weights w = weights_of(block, units_->take(unit, block > 0 ? static_cast<int>(block) : -1));
  const Weights d = weights_of(block, units_->gradient(unit));
  const Sum sum = units_->accumulates() ? Sum::accumulate : Sum::overwrite;
  Kept& k = kept_[block];
  // What another block has overwritten since.
  if (options_.recompute == Recompute::full) attention_forward(w, k);
  if (options_.recompute != Recompute::none) feed_forward_inner(w, k);

  ops::linear_input_gradient(d_inner_TF_, dx_TD_, w.down);
  ops::swiglu_backward(k.gate_up, inner_TF_, d_inner_TF_);
  const at::Tensor& d_gate_up = k.gate_up;
  ops::linear_weight_gradient(d.down, dx_TD_, inner_TF_, sum);
  ops::linear_weight_gradient(d.gate_up, d_gate_up, k.h2_TD, sum);
  ops::linear_input_gradient(dh_TD_, d_gate_up, w.gate_up);
  sum_over_tp(dh_TD_);
  ops::rmsnorm_backward(dx_TD_, d.norm2, sum, partial_, dh_TD_, k.x2_TD, w.norm2, k.inv2_T);

  ops::linear_weight_gradient(d.o, dx_TD_, k.o_TD, sum);
  ops::linear_input_gradient(d_o_, dx_TD_, w.o);
  ops::attention_backward(attention_, d_qkv_, d_o_, k.qkv, k.o_TD, k.lse);
  ops::rope(d_qkv_, (s.heads + s.kv_heads) / parts_, s.head_dim(), cos_, sin_, ops::Turn::back);
  if (options_.recompute == Recompute::selective) {
    ops::rmsnorm(k.h1_TD, k.inv1_T, k.x_TD, w.norm1, options_.norm_eps);
  }
  ops::linear_weight_gradient(d.qkv, d_qkv_, k.h1_TD, sum);
  ops::linear_input_gradient(dh_TD_, d_qkv_, w.qkv);
  sum_over_tp(dh_TD_);
  ops::rmsnorm_backward(dx_TD_, d.norm1, sum, partial_, dh_TD_, k.x_TD, w.norm1, k.inv1_T);
  units_->drop(unit);
  units_->reduce(unit);
}

double Model::forward_backward(const int32_t* tokens, const int32_t* targets, float scale) {
  const size_t blocks = kept_.size();
  const bool tied = options_.shape.tied;
  const auto x_of = [&](size_t block) { return block < blocks ? kept_[block].x_TD : x_last_TD_; };
  const Parameter& embedding = units_->units()[0].parameters[0];
  {
    const at::Tensor flat = units_->take(0, 1);
    ops::embed(x_of(0), matrix_at(flat, embedding, embedding.rows), tokens, embedding.first_row);
    sum_over_tp(x_of(0));
    if (!tied) units_->drop(0);
  }
  for (size_t i = 0; i < blocks; ++i) block_forward(i, x_of(i + 1));
  const double loss = head(targets, scale);
  for (size_t i = blocks; i-- > 0;) block_backward(i);
  const at::Tensor d_embedding = matrix_at(units_->gradient(0), embedding, embedding.rows);
  // A tied head has written the whole gradient already.
  if (!tied && !units_->accumulates()) ops::zero(d_embedding);
  ops::embed_backward(d_embedding, dx_TD_, tokens, embedding.first_row);
  if (tied) units_->drop(0);
  units_->reduce(0);
  units_->end_micro_step();
  return loss;
}

}  // namespace ezpz::train
