// The whole model against the same model written with PyTorch's operations, and its own gradients.
#include "train/model/model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "train/data/random_source.h"

namespace ezpz::train {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kSeq = 9;

bench::ModelShape small(bool tied) {
  bench::ModelShape s;
  s.name = "small";
  s.dim = 24;
  s.layers = 2;
  s.heads = 4;
  s.kv_heads = 2;
  s.hidden = 40;
  s.vocab = 61;
  s.tied = tied;
  return s;
}

struct Batch {
  std::vector<int32_t> tokens, targets;
};

Batch batch_of(const bench::ModelShape& shape) {
  Batch batch;
  RandomSource data(shape.vocab, kSeq, 3);
  std::vector<int64_t> sample(kSeq + 1);
  for (uint64_t b = 0; b < kBatch; ++b) {
    EXPECT_TRUE(data.read(b, sample.data()).ok());
    batch.tokens.insert(batch.tokens.end(), sample.begin(), sample.end() - 1);
    batch.targets.insert(batch.targets.end(), sample.begin() + 1, sample.end());
  }
  return batch;
}

// The sum of the losses, from flat units as they lie in the model.
class Reference {
 public:
  Reference(const bench::ModelShape& shape, const std::vector<UnitLayout>& units,
            std::vector<at::Tensor> flats)
      : shape_(shape), units_(units), flats_(std::move(flats)) {}

  // Every adapted matrix then is W + scale * B A.
  void adapt(const std::vector<UnitLayout>& units, const std::vector<at::Tensor>& flats,
             double scale) {
    for (size_t u = 0; u < units.size(); ++u) {
      for (const Parameter& p : units[u].parameters) {
        adapters_[p.name] = flats[u].narrow(0, p.offset, p.elements()).view({p.rows, p.columns});
      }
    }
    adapter_scale_ = scale;
  }

  at::Tensor loss(const Batch& batch) const {
    const auto index = [](const std::vector<int32_t>& v) {
      return at::tensor(at::ArrayRef<int>(v)).to(at::kLong);
    };
    at::Tensor x = get(0, "model.embed_tokens.weight").index_select(0, index(batch.tokens));
    for (int64_t i = 0; i < shape_.layers; ++i) x = block(i, x);
    const size_t last = units_.size() - 1;
    const at::Tensor w =
        shape_.tied ? get(0, "model.embed_tokens.weight") : get(last, "lm_head.weight");
    const at::Tensor logits = norm(x, get(last, "model.norm.weight")).matmul(w.t());
    return -at::log_softmax(logits, -1).gather(1, index(batch.targets).unsqueeze(1)).sum();
  }

 private:
  at::Tensor get(size_t unit, const std::string& name) const {
    const Parameter& p = units_[unit].find(name);
    const at::Tensor flat = flats_[unit].narrow(0, p.offset, p.elements());
    if (p.columns == 1) return flat;
    const at::Tensor w = flat.view({p.rows, p.columns});
    const std::string stem = "base_model.model." + name.substr(0, name.rfind('.'));
    const auto a = adapters_.find(stem + ".lora_A.weight");
    if (a == adapters_.end()) return w;
    return w + adapter_scale_ * adapters_.at(stem + ".lora_B.weight").matmul(a->second);
  }
  static at::Tensor norm(const at::Tensor& x, const at::Tensor& w) {
    return x * (x.pow(2).mean(-1, true) + 1e-5).rsqrt() * w;
  }
  // (rows, heads * head_dim) to (batch, heads, seq, head_dim), turned by position.
  at::Tensor turned(const at::Tensor& x, int64_t heads) const {
    const int64_t dim = shape_.head_dim();
    const at::Tensor y = x.view({kBatch, kSeq, heads, dim}).transpose(1, 2);
    const at::Tensor rate =
        at::pow(shape_.rope_theta, -at::arange(0, dim, 2) / static_cast<double>(dim));
    const at::Tensor angle = at::outer(at::arange(kSeq), rate);
    const at::Tensor cos = at::cat({angle, angle}, 1).cos(), sin = at::cat({angle, angle}, 1).sin();
    const at::Tensor other = at::cat({-y.narrow(3, dim / 2, dim / 2), y.narrow(3, 0, dim / 2)}, 3);
    return y * cos + other * sin;
  }
  at::Tensor block(int64_t i, const at::Tensor& x) const {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    const auto unit = static_cast<size_t>(i + 1);
    const auto w = [&](const char* name) { return get(unit, at + name); };
    const at::Tensor h = norm(x, w("input_layernorm.weight"));
    const int64_t group = shape_.heads / shape_.kv_heads, dim = shape_.head_dim();
    const at::Tensor q = turned(h.matmul(w("self_attn.q_proj.weight").t()), shape_.heads);
    const at::Tensor k = turned(h.matmul(w("self_attn.k_proj.weight").t()), shape_.kv_heads)
                             .repeat_interleave(group, 1);
    const at::Tensor v = h.matmul(w("self_attn.v_proj.weight").t())
                             .view({kBatch, kSeq, shape_.kv_heads, dim})
                             .transpose(1, 2)
                             .repeat_interleave(group, 1);
    const at::Tensor scores =
        (q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(dim)))
            .masked_fill(at::ones({kSeq, kSeq}).triu(1).to(at::kBool), -INFINITY);
    const at::Tensor o = scores.softmax(-1).matmul(v).transpose(1, 2).reshape({-1, shape_.dim});
    const at::Tensor x2 = x + o.matmul(w("self_attn.o_proj.weight").t());
    const at::Tensor h2 = norm(x2, w("post_attention_layernorm.weight"));
    const at::Tensor inner =
        at::silu(h2.matmul(w("mlp.gate_proj.weight").t())) * h2.matmul(w("mlp.up_proj.weight").t());
    return x2 + inner.matmul(w("mlp.down_proj.weight").t());
  }

  bench::ModelShape shape_;
  const std::vector<UnitLayout>& units_;
  std::vector<at::Tensor> flats_;
  std::map<std::string, at::Tensor> adapters_;
  double adapter_scale_ = 0;
};

// Values that show their place, and leaves of the reference with the same.
std::vector<at::Tensor> spread(Sharded* units) {
  std::vector<at::Tensor> leaves;
  for (auto& shard : units->shards()) {
    shard.parameters.mul_(5).add_(at::arange(shard.size).remainder(7).mul(0.01));
    leaves.push_back(shard.parameters.clone().requires_grad_(true));
  }
  return leaves;
}

void expect_gradients(Sharded* units, const std::vector<at::Tensor>& leaves) {
  for (size_t u = 0; u < leaves.size(); ++u) {
    const at::Tensor expected = leaves[u].grad(), got = units->shards()[u].gradient;
    for (const Parameter& p : units->units()[u].parameters) {
      const at::Tensor a = expected.narrow(0, p.offset, p.elements());
      const at::Tensor b = got.narrow(0, p.offset, p.elements());
      const double size = a.abs().max().item<double>();
      EXPECT_GT(size, 0) << p.name;
      EXPECT_LT((a - b).abs().max().item<double>(), 1e-4 * size) << p.name;
    }
  }
}

class ModelGradients : public ::testing::TestWithParam<std::tuple<bool, Recompute>> {};
INSTANTIATE_TEST_SUITE_P(AllKinds, ModelGradients,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(Recompute::none, Recompute::selective,
                                                              Recompute::full)));

TEST_P(ModelGradients, AreThoseOfAutogradTiedOrNotWhateverIsComputedAgain) {
  const auto [tied, recompute] = GetParam();
  const bench::ModelShape shape = small(tied);
  const auto alone = make_alone();
  Sharded units(unit_layouts(shape), alone.get(), 11);
  // Norms that are not all one, so that their place in the formulas shows; larger matrices, so that
  // every part of the gradient does.
  const std::vector<at::Tensor> leaves = spread(&units);
  ModelOptions options;
  options.shape = shape;
  options.batch = kBatch;
  options.seq = kSeq;
  options.recompute = recompute;
  Model model(options, &units, nullptr, alone.get());
  const Batch batch = batch_of(shape);
  const at::Tensor want = Reference(shape, units.units(), leaves).loss(batch);
  (want * 0.5).backward();
  // Twice in a step: the second micro-step adds.
  units.begin_step();
  const double loss = model.forward_backward(batch.tokens.data(), batch.targets.data(), 0.25F);
  EXPECT_NEAR(loss, want.item<double>(), 1e-3);
  EXPECT_NEAR(model.forward_backward(batch.tokens.data(), batch.targets.data(), 0.25F), loss, 1e-9);
  expect_gradients(&units, leaves);
}

class AdapterGradients : public ::testing::TestWithParam<std::tuple<bool, bool, Recompute>> {};
INSTANTIATE_TEST_SUITE_P(AllKinds, AdapterGradients,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(),
                                            ::testing::Values(Recompute::none, Recompute::selective,
                                                              Recompute::full)));

TEST_P(AdapterGradients, AreThoseOfAutogradAndTheFrozenWeightsHaveNone) {
  const auto [attention, tied, recompute] = GetParam();
  const bench::ModelShape shape = small(tied);
  bench::Lora lora{3, attention, !attention || tied};
  const auto alone = make_alone();
  Sharded units(unit_layouts(shape), alone.get(), 11, Training::frozen);
  Sharded adapters(adapter_layouts(shape, lora), alone.get(), 12);
  std::vector<at::Tensor> frozen = spread(&units);
  const std::vector<at::Tensor> leaves = spread(&adapters);
  ModelOptions options;
  options.shape = shape;
  options.batch = kBatch;
  options.seq = kSeq;
  options.recompute = recompute;
  options.lora = lora;
  options.lora_scale = 1.5F;
  Model model(options, &units, &adapters, alone.get());
  const Batch batch = batch_of(shape);
  Reference reference(shape, units.units(), frozen);
  reference.adapt(adapters.units(), leaves, 1.5);
  const at::Tensor want = reference.loss(batch);
  (want * 0.5).backward();
  units.begin_step();
  adapters.begin_step();
  const double loss = model.forward_backward(batch.tokens.data(), batch.targets.data(), 0.25F);
  EXPECT_NEAR(loss, want.item<double>(), 1e-3);
  EXPECT_NEAR(model.forward_backward(batch.tokens.data(), batch.targets.data(), 0.25F), loss, 1e-9);
  expect_gradients(&adapters, leaves);
  for (const auto& shard : units.shards()) EXPECT_FALSE(shard.gradient.defined());
}

// Llama 3 stretches them; a folder's configuration says how.
TEST(Model, TurnsByTheFrequenciesItIsGiven) {
  const bench::ModelShape shape = small(false);
  const auto alone = make_alone();
  Sharded units(unit_layouts(shape), alone.get(), 1);
  spread(&units);
  const Batch batch = batch_of(shape);
  const auto loss_with = [&](std::vector<double> frequencies) {
    ModelOptions options;
    options.shape = shape;
    options.batch = kBatch;
    options.seq = kSeq;
    options.rope_frequencies = std::move(frequencies);
    Model model(options, &units, nullptr, alone.get());
    units.begin_step();
    return model.forward_backward(batch.tokens.data(), batch.targets.data(), 1.0F);
  };
  std::vector<double> of_theta;
  for (int64_t i = 0; i < shape.head_dim(); i += 2) {
    of_theta.push_back(std::pow(shape.rope_theta,
                                -static_cast<double>(i) / static_cast<double>(shape.head_dim())));
  }
  EXPECT_EQ(loss_with(of_theta), loss_with({}));
  for (double& frequency : of_theta) frequency /= 8;
  EXPECT_GT(std::abs(loss_with(of_theta) - loss_with({})), 1e-3);
}

TEST(Model, ItsFirstLossIsThatOfAUniformGuess) {
  const bench::ModelShape shape = small(false);
  const auto alone = make_alone();
  Sharded units(unit_layouts(shape), alone.get(), 1);
  ModelOptions options;
  options.shape = shape;
  options.batch = kBatch;
  options.seq = kSeq;
  Model model(options, &units, nullptr, alone.get());
  const Batch batch = batch_of(shape);
  units.begin_step();
  const double loss = model.forward_backward(batch.tokens.data(), batch.targets.data(), 1.0F);
  EXPECT_NEAR(loss / (kBatch * kSeq), std::log(61.0), 0.1);
}

}  // namespace
}  // namespace ezpz::train
