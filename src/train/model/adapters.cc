#include "train/model/adapters.h"

namespace ezpz::train {
namespace {

// f(j, where adapter j's outputs begin, its product's columns)
template <class F>
void each(const AdapterGroup& group, const at::Tensor& u, F&& f) {
  int64_t output = 0;
  for (size_t j = 0; j < group.b.size(); ++j) {
    const at::Tensor& b = group.b[j];
    const int64_t rank = b.size(1);
    f(b, output, u.narrow(1, static_cast<int64_t>(j) * rank, rank));
    output += b.size(0);
  }
}

}  // namespace

at::Tensor adapter_input(const at::Tensor& x, const ops::Dropout& dropout,
                         const at::Tensor& scratch) {
  if (dropout.rate == 0) return x;
  at::Tensor left = ops::corner(scratch, x.size(0), x.size(1));
  ops::dropout(left, x, dropout);
  return left;
}

void adapter_forward(const AdapterGroup& group, const at::Tensor& out, const at::Tensor& u,
                     const at::Tensor& x, float scale) {
  ops::linear(u, x, group.a);
  each(group, u, [&](const at::Tensor& b, int64_t output, const at::Tensor& u_j) {
    ops::linear(out.narrow(1, output, b.size(0)), u_j, b, Sum::accumulate, scale);
  });
}

void adapter_product_gradient(const AdapterGroup& group, const at::Tensor& du,
                              const at::Tensor& d_out, float scale) {
  each(group, du, [&](const at::Tensor& b, int64_t output, const at::Tensor& du_j) {
    ops::linear_input_gradient(du_j, d_out.narrow(1, output, b.size(0)), b, Sum::overwrite, scale);
  });
}

void adapter_input_gradient(const AdapterGroup& group, const at::Tensor& dx, const at::Tensor& du,
                            const ops::Dropout& dropout, const at::Tensor& scratch) {
  if (dropout.rate == 0) {
    ops::linear_input_gradient(dx, du, group.a, Sum::accumulate);
    return;
  }
  const at::Tensor through = ops::corner(scratch, dx.size(0), dx.size(1));
  ops::linear_input_gradient(through, du, group.a);
  ops::add_dropout(dx, through, dropout);
}

void adapter_weight_gradient(const AdapterGroup& gradient, const at::Tensor& du,
                             const at::Tensor& d_out, const at::Tensor& u, const at::Tensor& x,
                             Sum sum, float scale) {
  each(gradient, u, [&](const at::Tensor& db, int64_t output, const at::Tensor& u_j) {
    ops::linear_weight_gradient(db, d_out.narrow(1, output, db.size(0)), u_j, sum, scale);
  });
  ops::linear_weight_gradient(gradient.a, du, x, sum);
}

}  // namespace ezpz::train
