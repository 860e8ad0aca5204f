#include "bench/metrics_dir.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "bench/metrics_log.h"
#include "bench/testing.h"

namespace ezpz::bench {
namespace {

MetricsReading must_read(const TestDir& dir) {
  const Result<MetricsReading> reading = read_metrics(dir.path);
  EXPECT_TRUE(reading.ok()) << (reading ? "" : reading.error().one_line());
  return reading ? *reading : MetricsReading();
}

std::vector<int64_t> iters(const MetricsReading& reading) {
  std::vector<int64_t> list;
  for (const StepMetrics& step : reading.steps) list.push_back(step.iter);
  return list;
}

TEST(MetricsLog, WritesALineAStepThatIsReadBack) {
  const TestDir dir;
  Result<MetricsLog> log = MetricsLog::open(dir.path + "/made", 2);
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(log->write(step_of(1, 100, 2)).ok());
  ASSERT_TRUE(log->write(step_of(2, 110, 2)).ok());
  const Result<MetricsReading> reading = read_metrics(dir.path + "/made");
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->rank, 2);
  EXPECT_EQ(iters(*reading), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(reading->losses(), "");
}

TEST(MetricsLog, OpenedAfterAKillItFirstEndsTheTornLine) {
  const TestDir dir;
  const std::string whole = lines_of({100, 100});
  dir.write("metrics-0.jsonl", whole.substr(0, whole.size() - 30));
  Result<MetricsLog> log = MetricsLog::open(dir.path, 0);
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(log->write(step_of(2, 120, 2)).ok());
  ASSERT_TRUE(log->write(step_of(3, 120, 2)).ok());
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(iters(reading), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(reading.damaged, 1);
  EXPECT_EQ(reading.truncated, 0);
}

TEST(MetricsLog, OpenedAfterAWholeLineItAddsNothingOfItsOwn) {
  const TestDir dir;
  dir.write("metrics-0.jsonl", lines_of({100}));
  {
    Result<MetricsLog> log = MetricsLog::open(dir.path, 0);
    ASSERT_TRUE(log.ok());
  }
  EXPECT_EQ(dir.read("metrics-0.jsonl"), lines_of({100}));
}

TEST(MetricsLog, AFullDiskIsToldAndTheNextRecordIsWhole) {
  // A limit of file size is a disk that fills up in the middle of a line.
  const TestDir dir;
  Result<MetricsLog> log = MetricsLog::open(dir.path, 0);
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(log->write(step_of(1, 100, 2)).ok());
  const int status = [&] {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      struct rlimit limit {};
      getrlimit(RLIMIT_FSIZE, &limit);
      limit.rlim_cur = 300;
      setrlimit(RLIMIT_FSIZE, &limit);
      const bool failed = !log->write(step_of(2, 100, 2)).ok();
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_FSIZE, &limit);
      const bool again = log->write(step_of(3, 100, 2)).ok();
      _exit(failed && again ? 0 : 1);
    }
    int code = -1;
    waitpid(child, &code, 0);
    return code;
  }();
  EXPECT_EQ(status, 0);
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(iters(reading), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(reading.damaged, 1);
}

TEST(MetricsDir, ATruncatedLastLineIsLeftOutAndCounted) {
  const TestDir dir;
  dir.write("metrics-0.jsonl",
            lines_of(published_series) + R"({"timestamp": 1786393261.0, "rank": 0, "metr)");
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(reading.steps.size(), 6U);
  EXPECT_EQ(reading.truncated, 1);
  EXPECT_EQ(reading.damaged, 0);
  EXPECT_EQ(reading.losses(), "1 truncated last line");
}

TEST(MetricsDir, ALastLineThatLacksOnlyItsNewlineIsWhole) {
  const TestDir dir;
  std::string text = lines_of({1, 2});
  text.pop_back();
  dir.write("metrics-0.jsonl", text);
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(reading.steps.size(), 2U);
  EXPECT_EQ(reading.losses(), "");
}

TEST(MetricsDir, DamagedAndForeignLinesAreCountedEach) {
  const TestDir dir;
  dir.write("metrics-0.jsonl", "garbage\n" + lines_of({1}) +
                                   "\n{\"level\": \"INFO\"}\n{\"torn\": \n" +
                                   R"({"rank": 0, "metrics": {"eval/loss": 1}})" + "\n");
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(reading.records, 1);
  EXPECT_EQ(reading.damaged, 2);
  EXPECT_EQ(reading.foreign, 1);
  EXPECT_EQ(reading.others, 1);
}

TEST(MetricsDir, AMissingRankIsNamedWhenOthersWrote) {
  const TestDir dir;
  for (const int rank : {0, 1, 3}) {
    dir.write("metrics-" + std::to_string(rank) + ".jsonl", lines_of({1, 2}, rank));
  }
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(reading.missing_ranks(std::nullopt), (std::vector<int>{2}));
  EXPECT_EQ(reading.missing_ranks(6), (std::vector<int>{2, 4, 5}));
}

TEST(MetricsDir, WhereOnlyRankZeroWritesNobodyIsMissing) {
  const TestDir dir;
  dir.write("metrics-0.jsonl", lines_of({1, 2}));
  EXPECT_TRUE(must_read(dir).missing_ranks(8).empty());
}

TEST(MetricsDir, WithoutRankZeroTheLowestTells) {
  const TestDir dir;
  dir.write("metrics-10.jsonl", lines_of({7}, 10));
  dir.write("metrics-2.jsonl", lines_of({5, 6}, 2));
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(reading.rank, 2);
  EXPECT_EQ(reading.steps.size(), 2U);
}

TEST(MetricsDir, RanksAreNotMixed) {
  const TestDir dir;
  dir.write("metrics.jsonl", lines_of({9}, 1) + lines_of({1, 2, 3}, 0) + lines_of({9, 9}, 2));
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(reading.rank, 0);
  EXPECT_EQ(reading.steps.size(), 3U);
  EXPECT_EQ(reading.records, 6);
  EXPECT_EQ(reading.layout, "metrics.jsonl");
}

TEST(MetricsDir, ARunIdsFileIsToldFromALogByWhatItHolds) {
  const TestDir dir;
  dir.write("journal.jsonl",
            "{\"time\": \"2026-08-24T13:08:50Z\", \"name\": \"start\", \"context\": {}}\n");
  dir.write("a-log.jsonl", "{\"level\": \"INFO\", \"message\": \"train/iter 3\"}\n");
  dir.write("20260824-run.jsonl", lines_of({1, 2}));
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(reading.layout, "<run_id>.jsonl");
  EXPECT_EQ(reading.files, (std::vector<std::string>{"20260824-run.jsonl"}));
  EXPECT_EQ(reading.losses(), "");
}

TEST(MetricsDir, ADirectoryWithoutMetricsSaysWhatWasLookedFor) {
  const TestDir dir;
  dir.write("journal.jsonl", "{\"name\": \"start\"}\n");
  const Result<MetricsReading> reading = read_metrics(dir.path);
  ASSERT_FALSE(reading.ok());
  EXPECT_NE(reading.error().one_line().find("metrics-<rank>.jsonl"), std::string::npos);
  EXPECT_FALSE(read_metrics(dir.path + "/nowhere").ok());
}

TEST(MetricsDir, APipeIsNotWaitedFor) {
  const TestDir dir;
  ASSERT_EQ(mkfifo((dir.path + "/metrics-0.jsonl").c_str(), 0600), 0);
  EXPECT_FALSE(read_metrics(dir.path).ok());
}

TEST(MetricsDir, MetricsBelowTheRunsDirectoryAreFound) {
  const TestDir dir;
  dir.write("metrics/metrics-0.jsonl", lines_of({1, 2}));
  dir.write("journal.jsonl", "{\"name\": \"start\"}\n");
  EXPECT_EQ(must_read(dir).steps.size(), 2U);
}

TEST(MetricsDir, StepsDoneAgainCountOnceAndTheLaterAttemptsNumbersStay) {
  const TestDir dir;
  dir.write("metrics-0.jsonl",
            lines_of({100, 101, 102, 103, 104}) + lines_of({200, 201, 202, 203}, 0, 12, 4));
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(iters(reading), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(reading.steps[2].tokens_per_s, 102);
  EXPECT_EQ(reading.steps[3].tokens_per_s, 200);
  EXPECT_EQ(reading.redone, 2);
  EXPECT_EQ(reading.gaps(), 0);
}

TEST(MetricsDir, StepsThatWereThrownAwayAndNeverDoneAgainDoNotCount) {
  const TestDir dir;
  dir.write("metrics-0.jsonl", lines_of({1, 1, 1, 1, 1, 1}) + lines_of({2}, 0, 12, 4));
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(iters(reading), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(reading.redone, 3);
}

TEST(MetricsDir, AClockThatGoesBackwardsChangesNoStepAndIsTold) {
  const TestDir dir;
  dir.write("metrics-0.jsonl", metrics_line(step_of(1, 10, 1), 0, test_time_s) +
                                   metrics_line(step_of(2, 11, 1), 0, test_time_s - 3600) +
                                   metrics_line(step_of(3, 12, 1), 0, test_time_s - 3599));
  const MetricsReading reading = must_read(dir);
  EXPECT_EQ(iters(reading), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(reading.clock_back, 1);
  EXPECT_EQ(reading.last_time_s, test_time_s);
}

TEST(MetricsDir, AStepThatTookLessThanNoTimeWasNotMeasured) {
  const TestDir dir;
  dir.write("metrics-0.jsonl", metrics_line(step_of(1, 10, 1, -3599.0), 0, test_time_s) +
                                   metrics_line(step_of(2, 10, 1, 0.0), 0, test_time_s));
  const MetricsReading reading = must_read(dir);
  EXPECT_TRUE(std::isnan(reading.steps[0].dt_s));
  EXPECT_TRUE(std::isnan(reading.steps[1].dt_s));
}

TEST(MetricsDir, WhereverTheBytesAreCutTheReadingIsTheSame) {
  const std::string text =
      lines_of(published_series) + "junk\n\n" + lines_of({1, 2}, 0, 12, 6) + "{\"torn";
  for (size_t cut = 1; cut < 400; cut += 7) {
    MetricsReading reading;
    MetricsFeed feed(&reading);
    feed.begin_file(0);
    for (size_t at = 0; at < text.size(); at += cut)
      feed.feed(std::string_view(text).substr(at, cut));
    feed.end_file();
    EXPECT_EQ(iters(reading), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7})) << cut;
    EXPECT_EQ(reading.damaged, 1) << cut;
    EXPECT_EQ(reading.truncated, 1) << cut;
  }
}

TEST(MetricsDir, ALineWithoutEndIsNotKeptInMemory) {
  MetricsReading reading;
  MetricsFeed feed(&reading);
  feed.begin_file(0);
  const std::string piece(1U << 20U, 'x');
  for (int i = 0; i < 40; ++i) feed.feed(piece);
  feed.feed("\n" + lines_of({5}));
  feed.end_file();
  EXPECT_EQ(reading.damaged, 1);
  EXPECT_EQ(reading.steps.size(), 1U);
}

}  // namespace
}  // namespace ezpz::bench
