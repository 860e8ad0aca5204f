// Every kernel's forward and backward against PyTorch's own operations and their gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "train/kernels/attention.h"
#include "train/kernels/gemm.h"
#include "train/kernels/random.h"
#include "train/kernels/simd.h"

namespace ezpz::train {

extern const Simd kSimd_baseline;

namespace {

at::Tensor normal(at::IntArrayRef shape, const char* name) {
  at::Tensor t = at::empty(shape, at::kFloat);
  normal_fill(t.data_ptr<float>(), t.numel(), stream_key(7, name), 0, 1.0F);
  return t;
}

at::Tensor leaf(const at::Tensor& t) { return t.clone().requires_grad_(true); }

float* data(const at::Tensor& t) { return t.data_ptr<float>(); }

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach() - b.detach()).abs().max().item<double>();
}

// The kernels as this processor runs them, and as the oldest one would.
class Kernels : public ::testing::TestWithParam<const Simd*> {};
INSTANTIATE_TEST_SUITE_P(OfEveryKind, Kernels, ::testing::Values(&simd(), &kSimd_baseline),
                         [](const auto& info) {
                           return std::string(info.param->name) +
                                  (info.index == 0 ? "_widest" : "_oldest");
                         });

TEST_P(Kernels, NormalizeAsAutogradDoes) {
  const int64_t rows = 37, dim = 83;
  const at::Tensor x = normal({rows, dim}, "x"), w = normal({dim}, "w"),
                   dy = normal({rows, dim}, "dy");
  const at::Tensor lx = leaf(x), lw = leaf(w);
  const at::Tensor want = lx * (lx.pow(2).mean(-1, true) + 1e-5).rsqrt() * lw;
  want.backward(dy);
  const at::Tensor y = at::empty_like(x), inv = at::empty({rows}),
                   partial = at::empty({threads(), dim});
  GetParam()->rmsnorm(data(y), data(inv), data(x), data(w), rows, dim, 1e-5F);
  EXPECT_LT(difference(y, want), 1e-5);
  // What is there already is added to.
  const at::Tensor dx = at::ones_like(x), dw = at::ones_like(w);
  GetParam()->rmsnorm_backward(data(dx), data(dw), data(partial), data(dy), data(x), data(w),
                               data(inv), rows, dim);
  EXPECT_LT(difference(dx - 1, lx.grad()), 2e-5);
  EXPECT_LT(difference(dw - 1, lw.grad()), 2e-5);
}

TEST_P(Kernels, GateAsAutogradDoes) {
  const int64_t rows = 19, hidden = 77;
  const at::Tensor gate_up = normal({rows, 2 * hidden}, "gate_up") * 4,
                   d = normal({rows, hidden}, "d");
  const at::Tensor l = leaf(gate_up);
  const at::Tensor want = at::silu(l.narrow(1, 0, hidden)) * l.narrow(1, hidden, hidden);
  want.backward(d);
  const at::Tensor out = at::empty({rows, hidden});
  GetParam()->swiglu(data(out), data(gate_up), rows, hidden);
  EXPECT_LT(difference(out, want), 2e-5);
  const at::Tensor gradient = gate_up.clone(), again = at::empty_like(out);
  GetParam()->swiglu_backward(data(gradient), data(again), data(d), rows, hidden);
  EXPECT_LT(difference(gradient, l.grad()), 2e-5);
  EXPECT_LT(difference(again, want), 2e-5);
}

TEST_P(Kernels, SurviveGatesThatOverflowAnExponential) {
  const at::Tensor gate_up = at::tensor({-200.0F, 200.0F, 1.0F, 1.0F}).view({1, 4});
  const at::Tensor out = at::empty({1, 2});
  GetParam()->swiglu(data(out), data(gate_up), 1, 2);
  EXPECT_NEAR(data(out)[0], 0, 1e-30);
  EXPECT_FLOAT_EQ(data(out)[1], 200);
}

TEST_P(Kernels, TurnHeadsAndTurnThemBack) {
  const int64_t seq = 11, heads = 3, head_dim = 10, half = 5, stride = 34;
  const at::Tensor x = normal({2 * seq, stride}, "x");
  const at::Tensor angle = normal({seq, half}, "angle"), cos = angle.cos(), sin = angle.sin();
  const at::Tensor turned = x.clone();
  GetParam()->rope(data(turned), 2 * seq, stride, heads, head_dim, data(cos), data(sin), seq, 1.0F);
  const at::Tensor in = x.narrow(1, 0, heads * head_dim).view({2, seq, heads, 2, half});
  const at::Tensor c = cos.view({1, seq, 1, half}), s = sin.view({1, seq, 1, half});
  const at::Tensor low = in.select(3, 0), high = in.select(3, 1);
  const at::Tensor want = at::stack({low * c - high * s, high * c + low * s}, 3);
  EXPECT_LT(difference(turned.narrow(1, 0, heads * head_dim).view({2, seq, heads, 2, half}), want),
            1e-6);
  EXPECT_EQ(difference(turned.narrow(1, 30, 4), x.narrow(1, 30, 4)), 0) << "not a head: untouched";
  GetParam()->rope(data(turned), 2 * seq, stride, heads, head_dim, data(cos), data(sin), seq,
                   -1.0F);
  EXPECT_LT(difference(turned, x), 1e-6);
}

TEST_P(Kernels, GiveTheLossAndItsGradientAsAutogradDoes) {
  const int64_t rows = 23, vocab = 131;
  const at::Tensor logits = normal({rows, vocab}, "logits") * 5;
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<int32_t>(r * 17 % vocab));
  const at::Tensor l = leaf(logits);
  const at::Tensor index = at::tensor(at::ArrayRef<int>(targets)).to(at::kLong);
  const at::Tensor want = -at::log_softmax(l, -1).gather(1, index.unsqueeze(1)).squeeze(1);
  (want.sum() * 0.25).backward();
  const at::Tensor gradient = logits.clone(), losses = at::empty({rows});
  GetParam()->cross_entropy(data(gradient), data(losses), targets.data(), 0.25F, rows, vocab);
  EXPECT_LT(difference(losses, want), 1e-5);
  EXPECT_LT(difference(gradient, l.grad()), 1e-6);
}

TEST_P(Kernels, TakeAnAdamStepWithDecoupledDecay) {
  const at::Tensor p = normal({1000}, "p"), g = normal({1000}, "g");
  const at::Tensor mine = p.clone(), m = at::zeros_like(p), v = at::zeros_like(p);
  AdamStep step;
  step.lr = 0.1F;
  step.decay = 0.5F;
  step.correction1 = 0.1F;
  step.correction2 = 0.05F;
  step.gradient_scale = 0.5F;
  GetParam()->adamw(data(mine), data(m), data(v), data(g), 1000, step);
  // After the first step the corrected moments are the gradient and its square.
  const at::Tensor d = g * 0.5;
  EXPECT_LT(difference(mine, p * (1 - 0.1 * 0.5) - 0.1 * d / (d.abs() + 1e-8)), 1e-5);
}

TEST_P(Kernels, SumSquaresOverManyBlocks) {
  const at::Tensor x = at::full({5 * 65536 + 3}, 0.5F);
  EXPECT_DOUBLE_EQ(GetParam()->square_sum(data(x), x.numel()), 0.25 * (5 * 65536 + 3));
}

struct Case {
  int64_t batch, seq, heads, kv_heads, head_dim;
};
class AttentionOf : public ::testing::TestWithParam<Case> {};
// One tile, several, a last one that is not full; a head of its own, shared ones.
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOf,
                         ::testing::Values(Case{2, 16, 4, 2, 8}, Case{1, 64, 2, 2, 16},
                                           Case{2, 150, 6, 2, 12}, Case{1, 1, 2, 1, 4}));

TEST_P(AttentionOf, EveryShapeIsAsAutogradDoesIt) {
  const Case c = GetParam();
  const AttentionShape shape{c.batch, c.seq, c.heads, c.kv_heads, c.head_dim};
  const at::Tensor qkv = normal({shape.rows(), shape.qkv_dim()}, "qkv");
  const at::Tensor d = normal({shape.rows(), shape.q_dim()}, "d");
  const at::Tensor l = leaf(qkv);
  const auto heads_of = [&](int64_t first, int64_t heads) {
    at::Tensor t = l.narrow(1, first, heads * c.head_dim).view({c.batch, c.seq, heads, c.head_dim});
    return t.transpose(1, 2).repeat_interleave(c.heads / heads, 1);
  };
  const at::Tensor q = heads_of(0, c.heads), k = heads_of(shape.q_dim(), c.kv_heads),
                   v = heads_of(shape.q_dim() + shape.kv_dim(), c.kv_heads);
  const at::Tensor future = at::ones({c.seq, c.seq}).triu(1).to(at::kBool);
  const at::Tensor scores =
      (q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(c.head_dim)))
          .masked_fill(future, -INFINITY);
  const at::Tensor want =
      scores.softmax(-1).matmul(v).transpose(1, 2).reshape({shape.rows(), shape.q_dim()});
  want.backward(d);

  Attention attention(shape);
  const at::Tensor out = at::empty_like(d), lse = at::empty({c.batch * c.heads * c.seq});
  attention.forward(data(out), data(lse), data(qkv));
  EXPECT_LT(difference(out, want), 1e-5);
  EXPECT_LT(difference(lse.view({c.batch, c.heads, c.seq}), scores.logsumexp({-1})), 1e-5);
  const at::Tensor gradient = at::full_like(qkv, 77.0F);
  attention.backward(data(gradient), data(d), data(qkv), data(out), data(lse));
  EXPECT_LT(difference(gradient, l.grad()), 3e-5);
}

TEST(Random, ValuesDoNotDependOnWhereAReaderStarts) {
  std::vector<float> whole(100), part(10);
  normal_fill(whole.data(), 100, stream_key(1, "w"), 0, 1.0F);
  normal_fill(part.data(), 10, stream_key(1, "w"), 40, 1.0F);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 40));
}

TEST(Random, NormalValuesHaveTheirDeviationAndNoOtherStreamsValues) {
  std::vector<float> a(200000), b(200000);
  normal_fill(a.data(), 200000, stream_key(1, "a"), 0, 0.02F);
  normal_fill(b.data(), 200000, stream_key(1, "b"), 0, 0.02F);
  double sum = 0, squares = 0, product = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i];
    squares += static_cast<double>(a[i]) * a[i];
    product += static_cast<double>(a[i]) * b[i];
  }
  EXPECT_NEAR(sum / 2e5, 0, 2e-4);
  EXPECT_NEAR(std::sqrt(squares / 2e5), 0.02, 2e-4);
  EXPECT_NEAR(product / 2e5 / 4e-4, 0, 0.02);
}

// Libtorch sets OpenMP's threads itself when its first operator runs on a thread: to one, unless
// told.
TEST(Threads, AreStillThereAfterLibtorchsFirstOperator) {
  std::thread fresh([] {
    set_threads(2);
    const at::Tensor x = at::ones({1 << 20}, at::kFloat);
    EXPECT_EQ(x.sum().item<float>(), 1 << 20);
    EXPECT_EQ(threads(), 2);
  });
  fresh.join();
}

}  // namespace
}  // namespace ezpz::train
