#include "bench/metrics_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ezpz::bench {
namespace {

MetricsRecord read(std::string_view line, LineKind wanted) {
  MetricsRecord record;
  EXPECT_EQ(read_metrics_line(line, &record), wanted) << line;
  return record;
}

TEST(MetricsLine, WhatIsWrittenIsReadBackToTheLastDigit) {
  StepMetrics step;
  step.iter = 7;
  step.loss = 14.734155123456789;
  step.dt_s = 2.653;
  step.tokens_per_s = 6175.041;
  step.tokens_per_s_per_gpu = 771.880125;
  step.mfu_percent = 2.32;
  step.tflops_per_gpu = 7.237;
  const MetricsRecord back = read(metrics_line(step, 3, 1787058530.123), LineKind::step);
  EXPECT_EQ(back.rank, 3);
  EXPECT_NEAR(back.time_s.value_or(0), 1787058530.123, 0.0015);
  EXPECT_EQ(back.step.iter, 7);
  EXPECT_EQ(back.step.loss, step.loss);
  EXPECT_EQ(back.step.dt_s, step.dt_s);
  EXPECT_EQ(back.step.tokens_per_s, step.tokens_per_s);
  EXPECT_EQ(back.step.tokens_per_s_per_gpu, step.tokens_per_s_per_gpu);
  EXPECT_EQ(back.step.mfu_percent, step.mfu_percent);
  EXPECT_EQ(back.step.tflops_per_gpu, step.tflops_per_gpu);
  EXPECT_FALSE(back.has_nan);
}

TEST(MetricsLine, IsJsonWithTheNamesOfTheField) {
  StepMetrics step;
  step.iter = 1;
  step.loss = 1e30;
  const auto json = nlohmann::json::parse(metrics_line(step, 0, 0.5));
  EXPECT_EQ(json["timestamp"], "1970-01-01T00:00:00.500Z");
  EXPECT_EQ(json["rank"], 0);
  EXPECT_EQ(json["metrics"]["train/loss"], 1e30);
  for (const char* name : {"dt", "tps", "tps_per_gpu", "mfu", "tflops"}) {
    EXPECT_TRUE(json["metrics"][std::string("train/") + name].is_null()) << name;
  }
}

TEST(MetricsLine, NanAndInfinityAreWrittenAsNull) {
  StepMetrics step;
  step.loss = std::nan("");
  step.dt_s = INFINITY;
  step.mfu_percent = -INFINITY;
  const std::string line = metrics_line(step, 0, 1);
  EXPECT_EQ(line.find("nan"), std::string::npos) << line;
  EXPECT_EQ(line.find("inf"), std::string::npos) << line;
  EXPECT_TRUE(std::isnan(read(line, LineKind::step).step.loss));
}

TEST(MetricsLine, PythonsNanIsReadAsNotMeasuredAndTold) {
  const MetricsRecord record = read(
      R"({"timestamp": 1786393250.5, "rank": 0, "metrics": {"train/iter": 2, "train/loss": NaN, "train/tps": -Infinity, "train/dt": 1e999, "train/mfu": 5.5}})",
      LineKind::step);
  EXPECT_TRUE(record.has_nan);
  EXPECT_TRUE(std::isnan(record.step.loss));
  EXPECT_TRUE(std::isnan(record.step.tokens_per_s));
  EXPECT_TRUE(std::isnan(record.step.dt_s));
  EXPECT_EQ(record.step.mfu_percent, 5.5);
  EXPECT_EQ(record.time_s, 1786393250.5);
}

TEST(MetricsLine, EveryCutOfALineIsDamaged) {
  const std::string line =
      R"({"timestamp": "t\u00e4g\"", "rank": 0, "metrics": {"train/iter": 12, "a": [1, {"b": null}, true], "train/tps": 1.5e3}})";
  read(line, LineKind::step);
  for (size_t length = 1; length < line.size(); ++length) {
    read(std::string_view(line).substr(0, length), LineKind::damaged);
  }
  read(line + "x", LineKind::damaged);
  read(line + line, LineKind::damaged);
}

TEST(MetricsLine, WhatIsNoJsonIsDamaged) {
  for (const char* line :
       {"hello", "{", "{'a': 1}", R"({"a": 01})", R"({"a": 1.})", R"({"a": +1})", R"({"a": .5})",
        R"({"a": "\x"})", R"({"a": "\u12g4"})", "{\"a\": \"\x01\"}", R"({"a" 1})", R"({"a": 1,})",
        R"([1, 2)", R"({"a": tru})"}) {
    read(line, LineKind::damaged);
  }
  read("{\"a\": " + std::string(100000, '[') + "}", LineKind::damaged);
}

TEST(MetricsLine, ALogsLineIsForeignAndAnEvaluationIsNoStep) {
  read(R"({"time": "2026-08-24T13:08:50Z", "name": "start", "context": {"metrics": 3}})",
       LineKind::foreign);
  read(R"({"level": "INFO", "metrics": "none", "message": "train/iter 5"})", LineKind::foreign);
  read("[1, 2]", LineKind::foreign);
  read("17", LineKind::foreign);
  read(R"({"rank": 0, "metrics": {"eval/loss": 2.5}})", LineKind::other);
  read(R"({"rank": 0, "metrics": {"precision/mixed_precision": "bf16"}})", LineKind::other);
  read(R"({"rank": 0, "metrics": {"train/iter": "three"}})", LineKind::other);
  read(R"({"rank": 0, "metrics": {"train/iter": 2.5}})", LineKind::other);
}

TEST(MetricsLine, NamesWithoutTrainAreTakenToo) {
  const MetricsRecord record =
      read(R"({"metrics": {"step": 4, "iter": 5, "loss": 1, "tps": 10}})", LineKind::step);
  EXPECT_EQ(record.step.iter, 5);
  EXPECT_EQ(record.step.tokens_per_s, 10);
  EXPECT_FALSE(record.rank);
  EXPECT_FALSE(record.time_s);
}

TEST(MetricsLine, ATimeInMillisecondsIsNoTime) {
  EXPECT_FALSE(
      read(R"({"timestamp": 1786393250000, "metrics": {"iter": 1}})", LineKind::step).time_s);
  EXPECT_FALSE(read(R"({"timestamp": 1e300, "metrics": {"iter": 1}})", LineKind::step).time_s);
  EXPECT_FALSE(read(R"({"timestamp": -1, "metrics": {"iter": 1}})", LineKind::step).time_s);
}

TEST(MetricsLine, TimesAreReadWithAnyZoneAndWithNoneAreNoTime) {
  EXPECT_EQ(parse_iso8601("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(parse_iso8601("2026-08-24T13:08:50Z"), 1787576930);
  EXPECT_EQ(parse_iso8601("2026-08-24T15:08:50+02:00"), 1787576930);
  EXPECT_EQ(parse_iso8601("2026-08-24T05:38:50-07:30"), 1787576930);
  EXPECT_EQ(parse_iso8601("2000-02-29T00:00:00Z"), 951782400);
  EXPECT_NEAR(parse_iso8601("2026-08-24T13:08:50.250Z").value_or(0), 1787576930.25, 1e-6);
  for (const char* text : {"", "2026-08-24", "2026-08-24T13:08:50", "2026-13-24T13:08:50Z",
                           "2026-08-24T13:08:50 CEST", "2026/08/24T13:08:50Z", "now"}) {
    EXPECT_FALSE(parse_iso8601(text)) << text;
  }
}

}  // namespace
}  // namespace ezpz::bench
