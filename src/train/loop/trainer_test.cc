// The same training, however it is divided: losses, gradient norms and parameters are compared at
// equal global batch, on data that can be learnt and differs from rank to rank.
#include "train/loop/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>

#include "train/kernels/simd.h"
#include "train/parallel/testing.h"

namespace ezpz::train {
namespace {

using testing::Planted;

constexpr int kGlobalBatch = 4;

TrainOptions small() {
  TrainOptions o;
  o.shape.name = "small";
  o.shape.dim = 32;
  o.shape.layers = 3;
  o.shape.heads = 4;
  o.shape.kv_heads = 2;
  o.shape.hidden = 56;
  o.shape.vocab = 90;
  o.seq = 16;
  o.steps = 20;
  o.lr = 3e-3;
  o.warmup_steps = 3;
  return o;
}

struct Outcome {
  std::vector<double> losses, norms;
  // A whole parameter by its name, put together from the ranks' parts.
  std::map<std::string, std::vector<float>> parameters;
};

struct Division {
  int data = 1;
  int tensor = 1;
  int accum = 1;
};

// Adds this rank's unit, gathered over its data-parallel ranks, to the whole.
void collect(const UnitLayout& layout, const std::vector<float>& unit, int tp, Outcome* outcome) {
  for (const Parameter& p : layout.parameters) {
    auto& whole = outcome->parameters[p.name];
    whole.resize(static_cast<size_t>(p.elements() * (p.split == Split::whole ? 1 : tp)));
    for (int64_t r = 0; r < p.rows; ++r) {
      const int64_t to = (p.first_row + r) * p.whole_columns + p.first_column;
      std::copy_n(unit.begin() + p.offset + r * p.columns, p.columns, whole.begin() + to);
    }
  }
}

Outcome run(TrainOptions o, Division division, Planted planted = Planted::nothing) {
  Outcome outcome;
  std::mutex mutex;
  o.tp = division.tensor;
  o.grad_accum = division.accum;
  o.batch = kGlobalBatch / division.data / division.accum;
  testing::on_mesh(division.data, division.tensor, planted, [&](Comm* data, Comm* tensor) {
    const auto alone = make_alone();
    Trainer trainer(o, {data, data, alone.get(), tensor}, *open_data(o, nullptr));
    for (long i = 0; i < o.steps; ++i) {
      const StepReport report = *trainer.step();
      if (data->rank() != 0 || tensor->rank() != 0) continue;
      outcome.losses.push_back(report.loss);
      outcome.norms.push_back(report.gradient_norm);
    }
    for (size_t u = 0; u < trainer.trained().units().size(); ++u) {
      const auto& shard = trainer.trained().shards()[u];
      std::vector<float> unit(static_cast<size_t>(shard.size * data->size()));
      data->wait(data->all_gather(unit.data(), shard.parameters.data_ptr<float>(), shard.size));
      const std::lock_guard lock(mutex);
      collect(trainer.trained().units()[u], unit, tensor->size(), &outcome);
    }
  });
  return outcome;
}

double worst_loss(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    worst = std::max(worst, std::abs(a.losses[i] - b.losses[i]));
  }
  return worst;
}

double worst_norm(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (size_t i = 0; i < 5 && i < a.norms.size(); ++i) {
    worst = std::max(worst, std::abs(a.norms[i] / b.norms[i] - 1));
  }
  return worst;
}

double worst_parameter(const Outcome& a, const Outcome& b) {
  double worst = 0;
  EXPECT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto& [name, values] : a.parameters) {
    const auto& others = b.parameters.at(name);
    EXPECT_EQ(values.size(), others.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst,
                       std::abs(static_cast<double>(values[i]) - static_cast<double>(others[i])));
    }
  }
  return worst;
}

TrainOptions one_plain_step() {
  TrainOptions o = small();
  o.optimizer = "sgd";
  o.steps = 1;
  o.warmup_steps = 0;
  o.lr = 1.0;
  o.clip = 0;
  return o;
}

void expect_same_training(const TrainOptions& o, Division division) {
  SCOPED_TRACE(std::to_string(division.data) + " x " + std::to_string(division.tensor) +
               " ranks, " + std::to_string(division.accum) + " micro-steps");
  const Outcome alone = run(o, {}), divided = run(o, division);
  ASSERT_EQ(alone.losses.size(), 20U);
  // Adapters of a frozen model that knows nothing can learn little.
  const double fall = o.lora.on() ? 0.03 : 0.1;
  EXPECT_LT(alone.losses.back(), alone.losses.front() - fall) << "nothing was learnt";
  EXPECT_LT(worst_loss(alone, divided), 1e-4);
  EXPECT_LT(worst_norm(alone, divided), 1e-5);
  TrainOptions plain = one_plain_step();
  plain.shape = o.shape;
  plain.recompute = o.recompute;
  plain.lora = o.lora;
  plain.lora_alpha = o.lora_alpha;
  EXPECT_LT(worst_parameter(run(plain, {}), run(plain, division)), 1e-5);
}

TEST(Training, IsTheSameOnAnyNumberOfRanksAndMicroSteps) {
  for (const Division division : {Division{1, 1, 4}, {2, 1, 1}, {2, 1, 2}, {4, 1, 1}}) {
    expect_same_training(small(), division);
  }
}

TEST(Training, IsTheSameWithMatricesDividedAndOnAMeshOfBoth) {
  expect_same_training(small(), {1, 2, 1});
  expect_same_training(small(), {2, 2, 1});
}

TEST(Training, IsTheSameWithTiedWeights) {
  TrainOptions o = small();
  o.shape.tied = true;
  expect_same_training(o, {2, 1, 2});
  expect_same_training(o, {2, 2, 1});
}

TEST(Training, IsTheSameWhateverTheBackwardComputesAgain) {
  for (const char* recompute : {"selective", "full"}) {
    TrainOptions o = small();
    o.recompute = recompute;
    expect_same_training(o, {2, 1, 1});
    expect_same_training(o, {1, 2, 1});
  }
}

TrainOptions with_adapters() {
  TrainOptions o = small();
  o.lora.rank = 3;
  o.lora.attention = true;
  o.lora.feed_forward = true;
  o.lora_alpha = 12;
  o.lr = 6e-3;
  return o;
}

TEST(Training, OfAdaptersIsTheSameOnAnyNumberOfRanksAndOnAMesh) {
  for (const Division division : {Division{2, 1, 1}, {2, 1, 2}, {4, 1, 1}, {1, 2, 1}, {2, 2, 1}}) {
    expect_same_training(with_adapters(), division);
  }
}

TEST(Training, OfAdaptersIsTheSameWhateverTheBackwardComputesAgain) {
  for (const char* recompute : {"selective", "full"}) {
    TrainOptions o = with_adapters();
    const Outcome kept = run(o, {});
    o.recompute = recompute;
    EXPECT_LT(worst_loss(kept, run(o, {})), 1e-5);
    EXPECT_LT(worst_loss(kept, run(o, {2, 2, 1})), 1e-4);
  }
}

TEST(Training, DropsTheSameInputsOutWhoeverHasTheSample) {
  TrainOptions o = with_adapters();
  const Outcome without = run(o, {});
  o.lora_dropout = 0.3;
  const Outcome alone = run(o, {});
  EXPECT_GT(worst_loss(without, alone), 1e-3) << "nothing was dropped";
  for (const Division division : {Division{1, 1, 2}, {2, 1, 2}, {1, 2, 1}, {2, 2, 1}}) {
    EXPECT_LT(worst_loss(alone, run(o, division)), 1e-4);
  }
  o.recompute = "full";
  EXPECT_LT(worst_loss(alone, run(o, {})), 1e-5);
}

TEST(Training, OfOneModuleOnlyWorksToo) {
  for (const bool attention : {true, false}) {
    TrainOptions o = with_adapters();
    o.lora.attention = attention;
    o.lora.feed_forward = !attention;
    const Outcome alone = run(o, {}), divided = run(o, {2, 2, 1});
    EXPECT_LT(worst_loss(alone, divided), 1e-4);
    EXPECT_LT(worst_norm(alone, divided), 1e-5);
    EXPECT_LT(worst_parameter(alone, divided), 1e-3);
  }
}

TEST(Training, BeginsWithAdaptersWhereItBeginsWithoutThem) {
  TrainOptions o = small();
  o.steps = 1;
  const Outcome base = run(o, {});
  o.lora.rank = 4;
  o.lora.attention = true;
  o.lora.feed_forward = true;
  EXPECT_EQ(run(o, {}).losses.at(0), base.losses.at(0)) << "B is zero at first";
}

TEST(Training, AdaptersWhoseGradientsStayPartsOfASumAreSeen) {
  const Outcome right = run(with_adapters(), {}),
                wrong = run(with_adapters(), {1, 2, 1}, Planted::skipped_all_reduce);
  EXPECT_GT(worst_norm(right, wrong), 1e-2);
}

// That the comparisons above can fail: the mistakes a parallel trainer makes, and what sees them.
TEST(Training, ASumInPlaceOfAMeanIsSeenInTheNormsAndTheParameters) {
  const Outcome right = run(small(), {}), wrong = run(small(), {2, 1, 1}, Planted::sum_for_mean);
  EXPECT_GT(worst_norm(right, wrong), 0.4);
  EXPECT_GT(worst_parameter(run(one_plain_step(), {}),
                            run(one_plain_step(), {2, 1, 1}, Planted::sum_for_mean)),
            1e-3);
}

TEST(Training, GradientsOfOneRankOnlyAreSeenInLossesNormsAndParameters) {
  const Outcome right = run(small(), {}), wrong = run(small(), {2, 1, 1}, Planted::own_part_only);
  EXPECT_GT(worst_loss(right, wrong), 1e-2);
  EXPECT_GT(worst_norm(right, wrong), 1e-2);
  EXPECT_GT(worst_parameter(run(one_plain_step(), {}),
                            run(one_plain_step(), {2, 1, 1}, Planted::own_part_only)),
            1e-3);
}

TEST(Training, ASkippedAllReduceIsSeenInLossesAndNorms) {
  for (const Division division : {Division{2, 1, 1}, {1, 2, 1}}) {
    const Outcome right = run(small(), {}),
                  wrong = run(small(), division, Planted::skipped_all_reduce);
    EXPECT_GT(worst_loss(right, wrong), 1e-2);
    EXPECT_GT(worst_norm(right, wrong), 1e-2);
  }
}

// What every tensor parallel rank holds alike (the norms' weights) must count once in the norm of
// the gradients. That it does is seen only if it is large enough to matter.
TEST(Training, ReplicatedParametersCountedTwiceWouldBeSeenInTheNorm) {
  TrainOptions o = one_plain_step();
  o.batch = kGlobalBatch;
  double all = 0;
  double replicated = 0;
  testing::on_mesh(1, 1, Planted::nothing, [&](Comm* data, Comm* tensor) {
    const auto alone = make_alone();
    Trainer trainer(o, {data, data, alone.get(), tensor}, *open_data(o, nullptr));
    ASSERT_TRUE(trainer.step().ok());
    for (size_t u = 0; u < trainer.trained().units().size(); ++u) {
      const auto* g = trainer.trained().shards()[u].gradient.data_ptr<float>();
      for (const Parameter& p : trainer.trained().units()[u].parameters) {
        const double squares = simd().square_sum(g + p.offset, p.elements());
        all += squares;
        if (p.split == Split::whole) replicated += squares;
      }
    }
  });
  EXPECT_GT(std::sqrt((all + replicated) / all) - 1, 5e-5) << "five times what is compared to";
}

}  // namespace
}  // namespace ezpz::train
