// The products of low-rank adapters: W acts as W + scale * B A on an input that may be dropped out.
// Adapters that read the same input are a group, whose A stand together as one matrix. Shapes: T
// tokens, n adapters of rank r, I inputs. C++17.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "train/kernels/gemm.h"
#include "train/model/ops.h"

namespace ezpz::train {

struct AdapterGroup {
  at::Tensor a;               // (n r) x I; undefined: no adapters here
  std::vector<at::Tensor> b;  // outputs x r each
  [[nodiscard]] bool on() const { return a.defined(); }
};

// x, or what dropout leaves of it, which then lies in scratch (T x the widest input).
at::Tensor adapter_input(const at::Tensor& x, const ops::Dropout&, const at::Tensor& scratch);

// u (T x n r) = x A^T, and out += scale * u_j B_j^T in the columns of each W.
void adapter_forward(const AdapterGroup&, const at::Tensor& out, const at::Tensor& u,
                     const at::Tensor& x, float scale);
// du (T x n r) = scale * d_out_j B_j
void adapter_product_gradient(const AdapterGroup&, const at::Tensor& du, const at::Tensor& d_out,
                              float scale);
// dx += du A, through the dropout.
void adapter_input_gradient(const AdapterGroup&, const at::Tensor& dx, const at::Tensor& du,
                            const ops::Dropout&, const at::Tensor& scratch);
// x: as the forward had it, dropped out.
void adapter_weight_gradient(const AdapterGroup& gradient, const at::Tensor& du,
                             const at::Tensor& d_out, const at::Tensor& u, const at::Tensor& x,
                             Sum sum, float scale);

}  // namespace ezpz::train
