#include "bench/plan.h"

#include <gtest/gtest.h>

namespace ezpz::bench {
namespace {

using Words = std::vector<std::string>;

PlanInput input() { return {"/bin/ezpz", "/bin/ezpz-train", "/out/a/attempt-1", 5}; }

TEST(Plan, ATrainersCellIsALaunchOfTheTrainer) {
  TableCell cell;
  cell.settings = {{"model", "debug"}, {"batch", "2"}, {"lora_rank", "4"}};
  cell.nodes = 2;
  cell.ppn = 3;
  cell.launcher = "local";
  cell.env = {{"OMP_NUM_THREADS", "1"}};
  cell.launch = {"--machine", "x"};
  cell.args = {"--lr", "1"};
  EXPECT_EQ(plan_cell(cell, input()).argv, (Words{"/bin/ezpz",    "launch",
                                                  "--log-dir",    "/out/a/attempt-1",
                                                  "--grace",      "5",
                                                  "--launcher",   "local",
                                                  "--nnodes",     "2",
                                                  "--ppn",        "3",
                                                  "--env",        "OMP_NUM_THREADS=1",
                                                  "--machine",    "x",
                                                  "--",           "/bin/ezpz-train",
                                                  "--model",      "debug",
                                                  "--batch-size", "2",
                                                  "--lora-rank",  "4",
                                                  "--lr",         "1"}));
}

TEST(Plan, ACommandStandsAsItIsButForItsDirectory) {
  TableCell cell;
  cell.command = {"prog", "--out={dir}/m", "{other}", "a b", "{dir}{dir}"};
  cell.settings = {{"batch", "2"}};
  cell.metrics = "m";
  EXPECT_EQ(
      plan_cell(cell, input()).argv,
      (Words{"/bin/ezpz", "launch", "--log-dir", "/out/a/attempt-1", "--grace", "5", "--", "prog",
             "--out=/out/a/attempt-1/m", "{other}", "a b", "/out/a/attempt-1/out/a/attempt-1"}));
  EXPECT_EQ(metrics_of(cell, "/out/a/attempt-1"), "/out/a/attempt-1/m");
  cell.metrics = "{dir}/n";
  EXPECT_EQ(metrics_of(cell, "/out/a/attempt-1"), "/out/a/attempt-1/n");
  cell.metrics = "";
  EXPECT_EQ(metrics_of(cell, "/out/a/attempt-1"), "");
}

TEST(Plan, ASecretIsHandedOnAndNotWrittenDown) {
  TableCell cell;
  cell.command = {"prog"};
  cell.env = {{"KEY", "x"}, {"PLAIN", "y"}};
  PlanInput asked = input();
  asked.is_secret = [](std::string_view name) { return name == "KEY"; };
  const CellPlan plan = plan_cell(cell, asked);
  EXPECT_EQ(plan.argv, (Words{"/bin/ezpz", "launch", "--log-dir", "/out/a/attempt-1", "--grace",
                              "5", "--env", "KEY", "--env", "PLAIN=y", "--", "prog"}));
  EXPECT_EQ(plan.env, (std::map<std::string, std::string>{{"KEY", "x"}}));
}

TEST(Plan, TheCellsOwnTrainerOutranksTheGivenOne) {
  TableCell cell;
  cell.settings = {{"model", "debug"}};
  cell.trainer = "mine";
  const Words argv = plan_cell(cell, input()).argv;
  EXPECT_EQ(argv[argv.size() - 3], "mine");
}

}  // namespace
}  // namespace ezpz::bench
