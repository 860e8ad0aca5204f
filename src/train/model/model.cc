#include "train/model/model.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "train/kernels/random.h"
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

Model::Model(const ModelOptions& options, Sharded* units, Sharded* adapters, Comm* tp)
    : options_(options),
      units_(units),
      adapters_(adapters),
      tp_(tp),
      parts_(tp->size()),
      tokens_(options.batch * options.seq),
      chunk_(0),
      attention_(attention_shape(options, tp->size())) {
  const int64_t fitting = kLogitBytes / 4 / (options_.shape.vocab / parts_);
  chunk_ = std::min(tokens_, std::max<int64_t>(fitting, 16));
  allocate();
  if (adapters_ != nullptr) allocate_for_adapters();
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

void Model::allocate_for_adapters() {
  const int64_t rank = options_.lora.rank;
  const auto tensor = [&](int64_t columns) { return at::empty({tokens_, columns}, at::kFloat); };
  for (size_t i = 0; i < kept_.size(); ++i) {
    // As the products beside them: what the backward has to compute again is shared.
    const bool all = options_.recompute == Recompute::none || i == 0;
    const bool some = options_.recompute != Recompute::full || i == 0;
    kept_[i].u_qkv = some ? tensor(3 * rank) : kept_[0].u_qkv;
    kept_[i].u_o = some ? tensor(rank) : kept_[0].u_o;
    kept_[i].u_gate_up = all ? tensor(2 * rank) : kept_[0].u_gate_up;
  }
  du_ = tensor(3 * rank);
  u_down_ = tensor(rank);
  if (options_.lora_dropout > 0) {
    dropped_ = tensor(std::max(options_.shape.dim, options_.shape.hidden / parts_));
  }
}

void Model::fill_rope_tables() {
  const int64_t half = options_.shape.head_dim() / 2;
  cos_ = at::empty({options_.seq, half}, at::kFloat);
  sin_ = at::empty({options_.seq, half}, at::kFloat);
  for (int64_t i = 0; i < half; ++i) {
    const double turn =
        options_.rope_frequencies.empty()
            ? std::pow(options_.shape.rope_theta,
                       -static_cast<double>(2 * i) / static_cast<double>(options_.shape.head_dim()))
            : options_.rope_frequencies[static_cast<size_t>(i)];
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

Model::Adapters Model::adapters_of(size_t block, const at::Tensor& flat) const {
  Adapters all;
  if (adapters_ == nullptr) return all;
  // The order of adapter_layouts(): for each module the A of those that read one input, their B,
  // then A and B of the one behind.
  const auto& p = adapters_->units()[block].parameters;
  const int64_t rank = options_.lora.rank;
  size_t next = 0;
  const auto group = [&](size_t n) {
    AdapterGroup g;
    g.a = matrix_at(flat, p[next], static_cast<int64_t>(n) * rank);
    for (size_t j = 0; j < n; ++j) {
      g.b.push_back(matrix_at(flat, p[next + n + j], p[next + n + j].rows));
    }
    next += 2 * n;
    return g;
  };
  if (options_.lora.attention) {
    all.qkv = group(3);
    all.o = group(1);
  }
  if (options_.lora.feed_forward) {
    all.gate_up = group(2);
    all.down = group(1);
  }
  return all;
}

ops::Dropout Model::dropout_of(size_t block, Input input) const {
  ops::Dropout d;
  d.rate = options_.lora_dropout;
  if (d.rate == 0) return d;
  const bool divided = input == Input::output || input == Input::down;
  d.whole_columns = input == Input::down ? options_.shape.hidden : options_.shape.dim;
  d.first_column = divided ? d.whole_columns / parts_ * tp_->rank() : 0;
  d.first = static_cast<uint64_t>(first_sample_ * options_.seq * d.whole_columns);
  d.key = stream_key(options_.seed, "lora dropout " + std::to_string(block) + " " +
                                        std::to_string(static_cast<int>(input)));
  return d;
}

void Model::add_row_parallel(const at::Tensor& to_TD, const at::Tensor& x, const at::Tensor& w,
                             const AdapterGroup& adapter, const at::Tensor& u,
                             const ops::Dropout& dropout) {
  const at::Tensor& out = parts_ == 1 ? to_TD : dh_TD_;
  ops::linear(out, x, w, parts_ == 1 ? Sum::accumulate : Sum::overwrite);
  if (adapter.on()) {
    adapter_forward(adapter, out, u, adapter_input(x, dropout, dropped_), options_.lora_scale);
  }
  if (parts_ == 1) return;
  sum_over_tp(dh_TD_);
  ops::add(to_TD, dh_TD_);
}

void Model::attention_forward(size_t block, const Weights& w, const Adapters& adapters) {
  const auto& s = options_.shape;
  Kept& k = kept_[block];
  ops::rmsnorm(k.h1_TD, k.inv1_T, k.x_TD, w.norm1, options_.norm_eps);
  ops::linear(k.qkv, k.h1_TD, w.qkv);
  if (adapters.qkv.on()) {
    adapter_forward(adapters.qkv, k.qkv, k.u_qkv,
                    adapter_input(k.h1_TD, dropout_of(block, Input::attention), dropped_),
                    options_.lora_scale);
  }
  ops::rope(k.qkv, (s.heads + s.kv_heads) / parts_, s.head_dim(), cos_, sin_, ops::Turn::forward);
  ops::attention(attention_, k.o_TD, k.lse, k.qkv);
  ops::copy(k.x2_TD, k.x_TD);
  add_row_parallel(k.x2_TD, k.o_TD, w.o, adapters.o, k.u_o, dropout_of(block, Input::output));
}

void Model::feed_forward_inner(size_t block, const Weights& w, const Adapters& adapters) {
  Kept& k = kept_[block];
  ops::rmsnorm(k.h2_TD, k.inv2_T, k.x2_TD, w.norm2, options_.norm_eps);
  ops::linear(k.gate_up, k.h2_TD, w.gate_up);
  if (adapters.gate_up.on()) {
    adapter_forward(adapters.gate_up, k.gate_up, k.u_gate_up,
                    adapter_input(k.h2_TD, dropout_of(block, Input::feed_forward), dropped_),
                    options_.lora_scale);
  }
}

void Model::block_forward(size_t block, const at::Tensor& x_next_TD) {
  const size_t unit = block + 1;
  const bool last = unit == kept_.size();
  const Weights w = weights_of(block, units_->take(unit, static_cast<int>(unit) + 1));
  Adapters adapters;
  if (adapters_ != nullptr) {
    adapters = adapters_of(block, adapters_->take(block, last ? -1 : static_cast<int>(block) + 1));
  }
  attention_forward(block, w, adapters);
  feed_forward_inner(block, w, adapters);
  Kept& k = kept_[block];
  ops::swiglu(inner_TF_, k.gate_up);
  ops::copy(x_next_TD, k.x2_TD);
  add_row_parallel(x_next_TD, inner_TF_, w.down, adapters.down, u_down_,
                   dropout_of(block, Input::down));
  units_->drop(unit);
  if (adapters_ != nullptr) adapters_->drop(block);
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
  const bool frozen = units_->frozen();
  const at::Tensor d_flat = frozen ? at::Tensor() : units_->gradient(unit);
  const Sum sum = units_->accumulates() ? Sum::accumulate : Sum::overwrite;
  const at::Tensor norm = vector_of(flat, p[0]);
  const Parameter& matrix = tied ? units_->units()[0].parameters[0] : p[1];
  const at::Tensor w_VD = matrix_at(tied ? units_->take(0, -1) : flat, matrix, matrix.rows);
  at::Tensor d_norm;
  at::Tensor dw_VD;
  if (!frozen) {
    d_norm = vector_of(d_flat, p[0]);
    dw_VD = matrix_at(tied ? units_->gradient(0) : d_flat, matrix, matrix.rows);
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
    if (!frozen) ops::linear_weight_gradient(dw_VD, logits, h, chunk_sum);
    chunk_sum = Sum::accumulate;
  }
  sum_over_tp(dh_TD_);
  ops::zero(dx_TD_);
  ops::rmsnorm_backward(dx_TD_, d_norm, sum, partial_, dh_TD_, x_last_TD_, norm, inv_last_T_);
  units_->drop(unit);
  if (!frozen) units_->reduce(unit);
  double loss = 0;
  for (int64_t t = 0; t < tokens_; ++t) loss += losses_.data_ptr<float>()[t];
  return loss;
}

// Where a block's gradients go; what is frozen has none.
struct Model::Gradients {
  Weights weights;
  Adapters adapters;
  Sum sum = Sum::overwrite;          // of the weights
  Sum adapter_sum = Sum::overwrite;  // of the adapters
};

void Model::feed_forward_backward(size_t block, const Weights& w, const Adapters& adapters,
                                  const Gradients& d) {
  Kept& k = kept_[block];
  const bool frozen = units_->frozen();
  const float scale = options_.lora_scale;
  const int64_t rank = options_.lora.rank;
  ops::linear_input_gradient(d_inner_TF_, dx_TD_, w.down);
  at::Tensor du;
  if (adapters.down.on()) {
    du = ops::corner(du_, tokens_, rank);
    adapter_product_gradient(adapters.down, du, dx_TD_, scale);
    adapter_input_gradient(adapters.down, d_inner_TF_, du, dropout_of(block, Input::down),
                           dropped_);
  }
  ops::swiglu_backward(k.gate_up, inner_TF_, d_inner_TF_);
  if (adapters.down.on()) {
    const at::Tensor x = adapter_input(inner_TF_, dropout_of(block, Input::down), dropped_);
    ops::linear(u_down_, x, adapters.down.a);
    adapter_weight_gradient(d.adapters.down, du, dx_TD_, u_down_, x, d.adapter_sum, scale);
  }
  const at::Tensor& d_gate_up = k.gate_up;
  if (!frozen) {
    ops::linear_weight_gradient(d.weights.down, dx_TD_, inner_TF_, d.sum);
    ops::linear_weight_gradient(d.weights.gate_up, d_gate_up, k.h2_TD, d.sum);
  }
  ops::linear_input_gradient(dh_TD_, d_gate_up, w.gate_up);
  if (adapters.gate_up.on()) {
    du = ops::corner(du_, tokens_, 2 * rank);
    adapter_product_gradient(adapters.gate_up, du, d_gate_up, scale);
    const ops::Dropout dropout = dropout_of(block, Input::feed_forward);
    adapter_weight_gradient(d.adapters.gate_up, du, d_gate_up, k.u_gate_up,
                            adapter_input(k.h2_TD, dropout, dropped_), d.adapter_sum, scale);
    adapter_input_gradient(adapters.gate_up, dh_TD_, du, dropout, dropped_);
  }
  sum_over_tp(dh_TD_);
  ops::rmsnorm_backward(dx_TD_, d.weights.norm2, d.sum, partial_, dh_TD_, k.x2_TD, w.norm2,
                        k.inv2_T);
}

void Model::attention_backward(size_t block, const Weights& w, const Adapters& adapters,
                               const Gradients& d) {
  const auto& s = options_.shape;
  Kept& k = kept_[block];
  const bool frozen = units_->frozen();
  const float scale = options_.lora_scale;
  const int64_t rank = options_.lora.rank;
  if (!frozen) ops::linear_weight_gradient(d.weights.o, dx_TD_, k.o_TD, d.sum);
  ops::linear_input_gradient(d_o_, dx_TD_, w.o);
  if (adapters.o.on()) {
    const at::Tensor du = ops::corner(du_, tokens_, rank);
    const ops::Dropout dropout = dropout_of(block, Input::output);
    adapter_product_gradient(adapters.o, du, dx_TD_, scale);
    adapter_weight_gradient(d.adapters.o, du, dx_TD_, k.u_o,
                            adapter_input(k.o_TD, dropout, dropped_), d.adapter_sum, scale);
    adapter_input_gradient(adapters.o, d_o_, du, dropout, dropped_);
  }
  ops::attention_backward(attention_, d_qkv_, d_o_, k.qkv, k.o_TD, k.lse);
  ops::rope(d_qkv_, (s.heads + s.kv_heads) / parts_, s.head_dim(), cos_, sin_, ops::Turn::back);
  if (options_.recompute == Recompute::selective) {
    ops::rmsnorm(k.h1_TD, k.inv1_T, k.x_TD, w.norm1, options_.norm_eps);
  }
  if (!frozen) ops::linear_weight_gradient(d.weights.qkv, d_qkv_, k.h1_TD, d.sum);
  // Nobody asks for the gradient of the first block's input when the embedding is frozen.
  const bool wanted = !frozen || block > 0;
  if (wanted) ops::linear_input_gradient(dh_TD_, d_qkv_, w.qkv);
  if (adapters.qkv.on()) {
    const at::Tensor du = ops::corner(du_, tokens_, 3 * rank);
    const ops::Dropout dropout = dropout_of(block, Input::attention);
    adapter_product_gradient(adapters.qkv, du, d_qkv_, scale);
    adapter_weight_gradient(d.adapters.qkv, du, d_qkv_, k.u_qkv,
                            adapter_input(k.h1_TD, dropout, dropped_), d.adapter_sum, scale);
    if (wanted) adapter_input_gradient(adapters.qkv, dh_TD_, du, dropout, dropped_);
  }
  if (!wanted) return;
  sum_over_tp(dh_TD_);
  ops::rmsnorm_backward(dx_TD_, d.weights.norm1, d.sum, partial_, dh_TD_, k.x_TD, w.norm1,
                        k.inv1_T);
}

void Model::block_backward(size_t block) {
  const size_t unit = block + 1;
  const bool frozen = units_->frozen();
  const Weights w = weights_of(block, units_->take(unit, block > 0 ? static_cast<int>(block) : -1));
  Adapters adapters;
  Gradients d;
  if (!frozen) {
    d.weights = weights_of(block, units_->gradient(unit));
    d.sum = units_->accumulates() ? Sum::accumulate : Sum::overwrite;
  }
  if (adapters_ != nullptr) {
    adapters = adapters_of(block, adapters_->take(block, static_cast<int>(block) - 1));
    d.adapters = adapters_of(block, adapters_->gradient(block));
    d.adapter_sum = adapters_->accumulates() ? Sum::accumulate : Sum::overwrite;
  }
  // What another block has overwritten since.
  if (options_.recompute == Recompute::full) attention_forward(block, w, adapters);
  if (options_.recompute != Recompute::none) feed_forward_inner(block, w, adapters);
  feed_forward_backward(block, w, adapters, d);
  attention_backward(block, w, adapters, d);
  units_->drop(unit);
  if (!frozen) units_->reduce(unit);
  if (adapters_ != nullptr) {
    adapters_->drop(block);
    adapters_->reduce(block);
  }
}

double Model::forward_backward(const int32_t* tokens, const int32_t* targets, float scale,
                               int64_t first_sample) {
  first_sample_ = first_sample;
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
  if (tied) units_->drop(0);
  if (!units_->frozen()) {
    const at::Tensor d_embedding = matrix_at(units_->gradient(0), embedding, embedding.rows);
    // A tied head has written the whole gradient already.
    if (!tied && !units_->accumulates()) ops::zero(d_embedding);
    ops::embed_backward(d_embedding, dx_TD_, tokens, embedding.first_row);
    units_->reduce(0);
  }
  units_->end_micro_step();
  if (adapters_ != nullptr) adapters_->end_micro_step();
  return loss;
}

}  // namespace ezpz::train
