#include "bench/history.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "bench/testing.h"

namespace ezpz::bench {
namespace {

RunInfo info_of(const std::string& started, const std::string& end) {
  RunInfo run;
  run.system = "Perlmutter";
  run.hosts = {"nid1", "nid3"};
  run.gpus = 12;
  run.command =
      split_words("python3 -m train --model agpt-2b --batch-size 1 --seq-len 2048 --tp 1");
  run.attempts.resize(2);
  run.started = started;
  run.end = end;
  return run;
}

void put(const TestDir& dir, const std::string& name, const RunInfo& run) {
  dir.write(name + "/metrics-0.jsonl", lines_of(published_series));
  dir.write(name + "/run_info.json", to_json_text(run));
}

TEST(History, RunsAreListedOldestFirstWithWhatIsKnown) {
  const TestDir dir;
  put(dir, "logs/failover-2", info_of("2026-08-25T00:00:00.000Z", "exhausted"));
  put(dir, "logs/failover-1", info_of("2026-08-24T00:00:00.000Z", "success"));
  dir.write("notes/todo.txt", "");
  const Result<std::vector<PastRun>> runs = read_history(dir.path);
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 2U);
  const PastRun& first = runs->at(0);
  EXPECT_EQ(first.path, "logs/failover-1");
  EXPECT_EQ(first.config, "agpt-2b/bs1/seq2048/tp1");
  EXPECT_EQ(first.hosts, (std::vector<std::string>{"nid1", "nid3"}));
  EXPECT_EQ(first.status, "success");
  EXPECT_EQ(first.attempts, 2);
  EXPECT_EQ(first.speeds.tokens_per_s, 34686);
  EXPECT_TRUE(first.doubts.empty());
  EXPECT_EQ(runs->at(1).status, "exhausted");
}

TEST(History, WhatIsNotKnownStaysOpen) {
  const TestDir dir;
  dir.write("run/metrics.jsonl", lines_of(published_series));
  put(dir, "killed", info_of("2020-01-01T00:00:00.000Z", ""));
  const Result<std::vector<PastRun>> runs = read_history(dir.path);
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ(runs->at(0).status, "no end recorded");
  EXPECT_EQ(runs->at(1).status, "");
  EXPECT_EQ(runs->at(1).attempts, 0);
  EXPECT_EQ(runs->at(1).system, "");
  EXPECT_FALSE(runs->at(1).gpus);
  EXPECT_EQ(runs->at(1).when, "2026-08-24T13:08:51.000Z");
}

TEST(History, ANumberThatContradictsItselfIsFlagged) {
  const TestDir dir;
  RunInfo run = info_of("2026-08-24T00:00:00.000Z", "success");
  run.gpus = 4;
  run.network = {"AWS Libfabric", {"Socket"}, true, "Socket"};
  put(dir, "run", run);
  const Result<PastRun> read = read_past_run(dir.path + "/run");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(join(read->doubts, "; "),
            "train/tps is 12 times train/tps_per_gpu, not 4; network fell back to Socket");
}

TEST(History, ALinkInACircleIsNotFollowed) {
  const TestDir dir;
  std::filesystem::create_directory_symlink(dir.path, dir.path + "/again");
  put(dir, "run", info_of("2026-08-24T00:00:00.000Z", "success"));
  const Result<std::vector<PastRun>> runs = read_history(dir.path);
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ(runs->size(), 1U);
  EXPECT_FALSE(read_history(dir.path + "/nowhere").ok());
}

TEST(History, ACommandIsCalledByItsModelElseByItsScript) {
  EXPECT_EQ(label_of_command(split_words("ezpz train --model s --batch-size=4 --lora-rank 16")),
            "s/bs4/lora-r16-attn");
  EXPECT_EQ(label_of_command(split_words("/usr/bin/python3 -u dir/train.py --x 1")), "train.py");
  EXPECT_EQ(label_of_command({}), "");
}

}  // namespace
}  // namespace ezpz::bench
