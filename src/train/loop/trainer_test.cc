// The same training, however it is divided: losses, gradient norms and parameters are compared at
// equal global batch, on data that can be learnt and differs from rank to rank.
#include "train/loop/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

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
  o.dataset = "chain";
  o.steps = 20;
  o.lr = 3e-3;
  o.warmup_steps = 3;
  return o;
}

struct Outcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<float>> parameters;
};

Outcome run(TrainOptions o, int ranks, int accum = 1, Planted planted = Planted::nothing) {
  Outcome outcome;
  o.grad_accum = accum;
  o.batch = kGlobalBatch / ranks / accum;
  testing::on_ranks(ranks, planted, [&](Comm* comm) {
    Trainer trainer(o, comm);
    for (long i = 0; i < o.steps; ++i) {
      const StepReport report = trainer.step();
      if (comm->rank() != 0) continue;
      outcome.losses.push_back(report.loss);
      outcome.norms.push_back(report.gradient_norm);
    }
    for (size_t u = 0; u < trainer.units().units().size(); ++u) {
      const auto& shard = trainer.units().shards()[u];
      std::vector<float> whole(static_cast<size_t>(shard.size * comm->size()));
      comm->wait(comm->all_gather(whole.data(), shard.parameters.data_ptr<float>(), shard.size));
      whole.resize(static_cast<size_t>(trainer.units().units()[u].elements));
      if (comm->rank() == 0) outcome.parameters.push_back(std::move(whole));
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
  for (size_t u = 0; u < a.parameters.size(); ++u) {
    for (size_t i = 0; i < a.parameters[u].size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(a.parameters[u][i]) -
                                       static_cast<double>(b.parameters[u][i])));
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

void expect_same_training(const TrainOptions& o, int ranks, int accum) {
  SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(accum) + " micro-steps");
  const Outcome alone = run(o, 1), divided = run(o, ranks, accum);
  ASSERT_EQ(alone.losses.size(), 20U);
  EXPECT_LT(alone.losses.back(), alone.losses.front() - 0.1) << "nothing was learnt";
  EXPECT_LT(worst_loss(alone, divided), 1e-4);
  EXPECT_LT(worst_norm(alone, divided), 1e-4);
  TrainOptions plain = one_plain_step();
  plain.shape = o.shape;
  plain.recompute = o.recompute;
  EXPECT_LT(worst_parameter(run(plain, 1), run(plain, ranks, accum)), 1e-5);
}

TEST(Training, IsTheSameOnAnyNumberOfRanksAndMicroSteps) {
  for (const auto& [ranks, accum] : {std::pair{1, 4}, {2, 1}, {2, 2}, {4, 1}}) {
    expect_same_training(small(), ranks, accum);
  }
}

TEST(Training, IsTheSameOnTwoRanksWithTiedWeights) {
  TrainOptions o = small();
  o.shape.tied = true;
  expect_same_training(o, 2, 2);
}

TEST(Training, IsTheSameWhateverTheBackwardComputesAgain) {
  for (const char* recompute : {"selective", "full"}) {
    TrainOptions o = small();
    o.recompute = recompute;
    expect_same_training(o, 2, 1);
  }
}

// That the comparisons above can fail: the mistakes a parallel trainer makes, and what sees them.
TEST(Training, ASumInPlaceOfAMeanIsSeenInTheNormsAndTheParameters) {
  const Outcome right = run(small(), 1), wrong = run(small(), 2, 1, Planted::sum_for_mean);
  EXPECT_GT(worst_norm(right, wrong), 0.5);
  EXPECT_GT(
      worst_parameter(run(one_plain_step(), 1), run(one_plain_step(), 2, 1, Planted::sum_for_mean)),
      1e-3);
}

TEST(Training, GradientsOfOneRankOnlyAreSeenInLossesNormsAndParameters) {
  const Outcome right = run(small(), 1), wrong = run(small(), 2, 1, Planted::own_part_only);
  EXPECT_GT(worst_loss(right, wrong), 1e-2);
  EXPECT_GT(worst_norm(right, wrong), 1e-2);
  EXPECT_GT(worst_parameter(run(one_plain_step(), 1),
                            run(one_plain_step(), 2, 1, Planted::own_part_only)),
            1e-3);
}

TEST(Training, ASkippedAllReduceIsSeenInLossesAndNorms) {
  const Outcome right = run(small(), 1), wrong = run(small(), 2, 1, Planted::skipped_all_reduce);
  EXPECT_GT(worst_loss(right, wrong), 1e-2);
  EXPECT_GT(worst_norm(right, wrong), 1e-2);
}

}  // namespace
}  // namespace ezpz::train
