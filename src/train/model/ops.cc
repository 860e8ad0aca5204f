#include "train/model/ops.h"

#include <algorithm>
#include <cstring>

#include "train/kernels/random.h"
#include "train/kernels/simd.h"

namespace ezpz::train::ops {
namespace {

float* data(const at::Tensor& t) { return t.data_ptr<float>(); }

Matrix matrix(const at::Tensor& t) { return {data(t), t.size(0), t.size(1), t.stride(0)}; }
ConstMatrix const_matrix(const at::Tensor& t) {
  return {data(t), t.size(0), t.size(1), t.stride(0)};
}

// f(index in x, kept or not) over a matrix.
template <class F>
void each_dropped(const at::Tensor& x, const Dropout& d, F&& f) {
  // A 32-bit threshold: the rate is exact to 2^-32.
  const auto limit = static_cast<uint64_t>(static_cast<double>(d.rate) * 0x1p32);
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const uint64_t first = d.first + static_cast<uint64_t>(r * d.whole_columns + d.first_column);
    for (int64_t c = 0; c < columns; ++c) {
      f(r * columns + c, (random_bits(d.key, first + static_cast<uint64_t>(c)) >> 32) >= limit);
    }
  }
}

}  // namespace

void linear(const at::Tensor& out, const at::Tensor& x, const at::Tensor& w, Sum sum, float scale) {
  train::linear(matrix(out), const_matrix(x), const_matrix(w), sum, scale);
}

void linear_input_gradient(const at::Tensor& dx, const at::Tensor& d_out, const at::Tensor& w,
                           Sum sum, float scale) {
  train::linear_input_gradient(matrix(dx), const_matrix(d_out), const_matrix(w), sum, scale);
}

void linear_weight_gradient(const at::Tensor& dw, const at::Tensor& d_out, const at::Tensor& x,
                            Sum sum, float scale) {
  train::linear_weight_gradient(matrix(dw), const_matrix(d_out), const_matrix(x), sum, scale);
}

void rmsnorm(const at::Tensor& y_TD, const at::Tensor& inv_rms_T, const at::Tensor& x_TD,
             const at::Tensor& w_D, float eps) {
  simd().rmsnorm(data(y_TD), data(inv_rms_T), data(x_TD), data(w_D), x_TD.size(0), x_TD.size(1),
                 eps);
}

void rmsnorm_backward(const at::Tensor& dx_TD, const at::Tensor& dw_D, Sum sum,
                      const at::Tensor& partial, const at::Tensor& dy_TD, const at::Tensor& x_TD,
                      const at::Tensor& w_D, const at::Tensor& inv_rms_T) {
  if (sum == Sum::overwrite && dw_D.defined()) zero(dw_D);
  simd().rmsnorm_backward(data(dx_TD), dw_D.defined() ? data(dw_D) : nullptr, data(partial),
                          data(dy_TD), data(x_TD), data(w_D), data(inv_rms_T), x_TD.size(0),
                          x_TD.size(1));
}

void rope(const at::Tensor& x, int64_t heads, int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, Turn turn) {
  simd().rope(data(x), x.size(0), x.size(1), heads, head_dim, data(cos), data(sin), cos.size(0),
              turn == Turn::forward ? 1.0F : -1.0F);
}

void attention(Attention& kernel, const at::Tensor& out, const at::Tensor& lse,
               const at::Tensor& qkv) {
  kernel.forward(data(out), data(lse), data(qkv));
}

void attention_backward(Attention& kernel, const at::Tensor& d_qkv, const at::Tensor& d_out,
                        const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse) {
  kernel.backward(data(d_qkv), data(d_out), data(qkv), data(out), data(lse));
}

void swiglu(const at::Tensor& out_TF, const at::Tensor& gate_up) {
  simd().swiglu(data(out_TF), data(gate_up), out_TF.size(0), out_TF.size(1));
}

void swiglu_backward(const at::Tensor& gate_up, const at::Tensor& out_TF,
                     const at::Tensor& d_out_TF) {
  simd().swiglu_backward(data(gate_up), data(out_TF), data(d_out_TF), out_TF.size(0),
                         out_TF.size(1));
}

void embed(const at::Tensor& x_TD, const at::Tensor& w_VD, const int32_t* tokens,
           int64_t first_row) {
  const int64_t dim = w_VD.size(1);
  for (int64_t t = 0; t < x_TD.size(0); ++t) {
    const int64_t row = tokens[t] - first_row;
    float* x = data(x_TD) + t * dim;
    if (row >= 0 && row < w_VD.size(0)) {
      std::copy_n(data(w_VD) + row * dim, dim, x);
    } else {
      std::fill_n(x, dim, 0.0F);
    }
  }
}

void embed_backward(const at::Tensor& dw_VD, const at::Tensor& dx_TD, const int32_t* tokens,
                    int64_t first_row) {
  const int64_t dim = dw_VD.size(1);
  for (int64_t t = 0; t < dx_TD.size(0); ++t) {
    const int64_t row = tokens[t] - first_row;
    if (row < 0 || row >= dw_VD.size(0)) continue;
    simd().add(data(dw_VD) + row * dim, data(dx_TD) + t * dim, dim);
  }
}

void dropout(const at::Tensor& out, const at::Tensor& x, const Dropout& d) {
  const float scale = 1.0F / (1.0F - d.rate);
  float* y = data(out);
  const float* from = data(x);
  each_dropped(x, d, [=](int64_t i, bool kept) { y[i] = kept ? scale * from[i] : 0.0F; });
}

void add_dropout(const at::Tensor& to, const at::Tensor& x, const Dropout& d) {
  const float scale = 1.0F / (1.0F - d.rate);
  float* y = data(to);
  const float* from = data(x);
  each_dropped(x, d, [=](int64_t i, bool kept) {
    if (kept) y[i] += scale * from[i];
  });
}

at::Tensor corner(const at::Tensor& scratch, int64_t rows, int64_t columns) {
  return scratch.view({-1}).narrow(0, 0, rows * columns).view({rows, columns});
}

void add(const at::Tensor& to, const at::Tensor& from) {
  simd().add(data(to), data(from), to.numel());
}

void copy(const at::Tensor& to, const at::Tensor& from) {
  std::memcpy(data(to), data(from), static_cast<size_t>(to.numel()) * sizeof(float));
}

void zero(const at::Tensor& t) {
  std::memset(data(t), 0, static_cast<size_t>(t.numel()) * sizeof(float));
}

}  // namespace ezpz::train::ops
