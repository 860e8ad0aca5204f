#include "bench/plausible.h"

#include <gtest/gtest.h>

namespace ezpz::bench {
namespace {

BenchRow row_of(const std::string& label, int nodes, double tokens_per_s) {
  BenchRow row;
  row.label = label;
  row.series = "s";
  row.state = "done";
  row.nodes = nodes;
  row.gpus = nodes * 4;
  row.ranks = nodes * 4;
  row.speeds.tokens_per_s = tokens_per_s;
  row.speeds.tokens_per_s_per_gpu = tokens_per_s / (nodes * 4);
  row.speeds.iters_per_s = 1;
  row.speeds.mfu_percent = 40;
  return row;
}

std::string rules_of(const BenchRow& row) {
  std::string text;
  for (const RowFlag& flag : row.flags) text += flag.rule + " ";
  return text;
}

std::string rules_of_one(BenchRow row) {
  std::vector<BenchRow> rows = {std::move(row)};
  judge(&rows);
  return rules_of(rows[0]);
}

TEST(Plausible, WhatScalesIsBelieved) {
  std::vector<BenchRow> rows = {row_of("1", 1, 1000), row_of("2", 2, 1900), row_of("4", 4, 3600)};
  for (BenchRow& row : rows) row.baseline = "1";
  judge(&rows);
  for (const BenchRow& row : rows) EXPECT_EQ(rules_of(row), "");
  EXPECT_DOUBLE_EQ(*rows[0].efficiency_percent, 100);
  EXPECT_DOUBLE_EQ(*rows[1].efficiency_percent, 95);
  EXPECT_DOUBLE_EQ(*rows[2].efficiency_percent, 90);
}

TEST(Plausible, AnMfuAboveThePeakIsNot) {
  BenchRow row = row_of("a", 1, 1000);
  row.speeds.mfu_percent = 100.5;
  EXPECT_EQ(rules_of_one(row), "mfu ");
  row.speeds.mfu_percent = 100;
  EXPECT_EQ(rules_of_one(row), "");
  row.speeds.mfu_percent.reset();
  EXPECT_EQ(rules_of_one(row), "");
}

TEST(Plausible, ASecondNodeIsNotSlowerThanOne) {
  std::vector<BenchRow> rows = {row_of("2", 2, 990), row_of("1", 1, 1000)};
  judge(&rows);
  EXPECT_EQ(rules_of(rows[0]), "slower ");
  EXPECT_NE(rows[0].flags[0].reason.find("990"), std::string::npos);
  EXPECT_EQ(rules_of(rows[1]), "");
  rows[0].series = "another model";
  judge(&rows);
  EXPECT_EQ(rules_of(rows[0]), "");
}

TEST(Plausible, AParallelEfficiencyUnderAQuarterIsNot) {
  std::vector<BenchRow> rows = {row_of("1", 1, 1000), row_of("8", 8, 1900)};
  judge(&rows);
  EXPECT_EQ(rules_of(rows[1]), "efficiency ");
  rows[1].speeds.tokens_per_s = 2000;
  judge(&rows);
  EXPECT_EQ(rules_of(rows[1]), "");
}

TEST(Plausible, ASlowConfigurationOnAsManyNodesIsNoParallelEfficiency) {
  std::vector<BenchRow> rows = {row_of("small", 1, 1000), row_of("large", 1, 10)};
  rows[1].series = "large";
  rows[1].baseline = "small";
  judge(&rows);
  EXPECT_EQ(rules_of(rows[1]), "");
  EXPECT_DOUBLE_EQ(*rows[1].efficiency_percent, 1);
  rows[1].nodes = 2;  // the named baseline is another series, and ran on fewer
  judge(&rows);
  EXPECT_EQ(rules_of(rows[1]), "efficiency ");
}

TEST(Plausible, TheWrongNetworkIsTold) {
  BenchRow row = row_of("a", 2, 1000);
  row.networks_used = {"Socket"};
  EXPECT_EQ(rules_of_one(row), "");
  row.network_fallback = true;
  row.network_expected = "AWS Libfabric";
  EXPECT_EQ(rules_of_one(row), "network ");
  row.network_fallback = false;
  row.network = "AWS Libfabric";
  EXPECT_EQ(rules_of_one(row), "network ");
  row.networks_used = {};
  EXPECT_EQ(rules_of_one(row), "network ");
  row.networks_used = {"aws libfabric"};
  EXPECT_EQ(rules_of_one(row), "");
}

TEST(Plausible, ThroughputAgreesWithTheTokensOfAStep) {
  BenchRow row = row_of("a", 1, 4 * 2048);
  row.tokens_a_rank = 2048;
  EXPECT_EQ(rules_of_one(row), "");
  row.tp = 2;  // two ranks share their samples
  EXPECT_EQ(rules_of_one(row), "tokens ");
  row.speeds.iters_per_s = 2;
  EXPECT_EQ(rules_of_one(row), "");
  row.speeds.iters_per_s = 1;
  row.tp = 1;
  row.speeds.tokens_per_s = 2048;  // of one GPU, said to be of all
  EXPECT_EQ(rules_of_one(row), "tokens ");
  row.tokens_a_rank = 0;
  EXPECT_EQ(rules_of_one(row), "");
}

TEST(Plausible, WhatIsNotDoneIsNotJudgedAndJudgesNobody) {
  std::vector<BenchRow> rows = {row_of("1", 1, 1000), row_of("2", 2, 10)};
  rows[0].state = "failed";
  rows[1].baseline = "1";
  judge(&rows);
  EXPECT_EQ(rules_of(rows[1]), "");
  EXPECT_FALSE(rows[1].efficiency_percent);
}

}  // namespace
}  // namespace ezpz::bench
