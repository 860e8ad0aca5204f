#include "train/loop/metrics.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ezpz::train {
namespace {

StepReport step(long number, double seconds, double loss = 2.5) {
  StepReport s;
  s.step = number;
  s.seconds = seconds;
  s.loss = loss;
  return s;
}

TEST(Metrics, PrintTheLossToSixDecimalsAndTheGlobalSpeed) {
  const Metrics metrics(2048, 2, 1e9, 1e13);
  const std::string line = metrics.line(step(18, 0.5, 10.2771234));
  EXPECT_EQ(line.substr(0, 39), "step=18 loss=10.277123 dt=0.5000 tps=40") << line;
  // 2048 tokens * 1 GFLOP / 0.5 s / 2 ranks = 2.048 TFLOP/s a rank, of 10.
  EXPECT_NE(line.find(" mfu=20.48 tflops=2.0480 "), std::string::npos) << line;
}

TEST(Metrics, LeaveTheWarmUpStepOutOfTheSpeedAndTakeTheMedian) {
  Metrics metrics(1000, 2, 1e9, 1e13);
  for (const double seconds : {9.0, 1.0, 2.0, 1.0, 1.0}) metrics.add(step(1, seconds));
  const auto json = nlohmann::json::parse(metrics.summary(123));
  EXPECT_DOUBLE_EQ(json["tokens_per_sec"].get<double>(), 1000);
  EXPECT_DOUBLE_EQ(json["tokens_per_sec_per_gpu"].get<double>(), 500);
  EXPECT_DOUBLE_EQ(json["final_loss"].get<double>(), 2.5);
  EXPECT_EQ(json["steps"], 5);
  EXPECT_EQ(json["params"], 123);
  EXPECT_GT(json["peak_rss_bytes"].get<int64_t>(), 1 << 20);
}

TEST(Metrics, SayNullForWhatWasNotMeasured) {
  Metrics metrics(1000, 1, 1e9, 1e13);
  metrics.add(step(1, 1.0, std::numeric_limits<double>::quiet_NaN()));
  const auto json = nlohmann::json::parse(metrics.summary(1));
  EXPECT_TRUE(json["tokens_per_sec"].is_null());
  EXPECT_TRUE(json["mfu"].is_null());
  EXPECT_TRUE(json["final_loss"].is_null());
}

}  // namespace
}  // namespace ezpz::train
