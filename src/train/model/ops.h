// The operations of the model on tensors: the one place that knows where a tensor lies and calls
// the kernels for it. Shapes: B batch, S sequence, T = B * S tokens, D model width, F feed-forward
// width, V vocabulary. A weight is outputs x inputs. Nothing is allocated here. C++17.
#pragma once

#include <ATen/core/Tensor.h>

#include "train/kernels/attention.h"
#include "train/kernels/gemm.h"

namespace ezpz::train::ops {

// Products, scaled. A tensor may be some columns of a wider one.
void linear(const at::Tensor& out, const at::Tensor& x, const at::Tensor& w,
            Sum sum = Sum::overwrite, float scale = 1);
void linear_input_gradient(const at::Tensor& dx, const at::Tensor& d_out, const at::Tensor& w,
                           Sum sum = Sum::overwrite, float scale = 1);
void linear_weight_gradient(const at::Tensor& dw, const at::Tensor& d_out, const at::Tensor& x,
                            Sum sum, float scale = 1);

void rmsnorm(const at::Tensor& y_TD, const at::Tensor& inv_rms_T, const at::Tensor& x_TD,
             const at::Tensor& w_D, float eps);
// Adds to dx; dw is overwritten or added to, and may be undefined (frozen). partial: threads x D.
void rmsnorm_backward(const at::Tensor& dx_TD, const at::Tensor& dw_D, Sum sum,
                      const at::Tensor& partial, const at::Tensor& dy_TD, const at::Tensor& x_TD,
                      const at::Tensor& w_D, const at::Tensor& inv_rms_T);

enum class Turn { forward, back };
// Turns the first `heads` heads of every row (queries and keys stand first in a row).
void rope(const at::Tensor& x, int64_t heads, int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, Turn);

void attention(Attention&, const at::Tensor& out, const at::Tensor& lse, const at::Tensor& qkv);
void attention_backward(Attention&, const at::Tensor& d_qkv, const at::Tensor& d_out,
                        const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse);

void swiglu(const at::Tensor& out_TF, const at::Tensor& gate_up);
// gate_up becomes its gradient, out is computed again. d_out and out may be one tensor's parts, not
// the same.
void swiglu_backward(const at::Tensor& gate_up, const at::Tensor& out_TF,
                     const at::Tensor& d_out_TF);

// w holds the rows from first_row on; tokens of other rows give zeros (and nothing, backward).
void embed(const at::Tensor& x_TD, const at::Tensor& w_VD, const int32_t* tokens,
           int64_t first_row);
// Adds.
void embed_backward(const at::Tensor& dw_VD, const at::Tensor& dx_TD, const int32_t* tokens,
                    int64_t first_row);

// out = x where a number counted from `first` on is at least the rate, else 0; scaled so that the
// mean stays. Row t has the numbers first + t * whole_columns + first_column and on.
struct Dropout {
  uint64_t key = 0;
  uint64_t first = 0;
  int64_t whole_columns = 0;
  int64_t first_column = 0;
  float rate = 0;
};
void dropout(const at::Tensor& out, const at::Tensor& x, const Dropout&);
// to += x, dropped out.
void add_dropout(const at::Tensor& to, const at::Tensor& x, const Dropout&);

// The first elements of scratch, as a matrix of these sizes.
at::Tensor corner(const at::Tensor& scratch, int64_t rows, int64_t columns);

void add(const at::Tensor& to, const at::Tensor& from);
void copy(const at::Tensor& to, const at::Tensor& from);
void zero(const at::Tensor&);

}  // namespace ezpz::train::ops
