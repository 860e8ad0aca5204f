#include "bench/amsc.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "bench/testing.h"

namespace ezpz::bench {
namespace {

constexpr double kNow_s = 1800000000;

MetricsReading reading_of(const std::string& text) {
  MetricsReading reading;
  MetricsFeed feed(&reading);
  feed.begin_file(0);
  feed.feed(text);
  feed.end_file();
  return reading;
}

ExportWish wish_of(const std::string& config, int nodes, int gpus) {
  ExportWish wish;
  wish.config = config;
  wish.system = "Perlmutter";
  wish.nodes = nodes;
  wish.gpus = gpus;
  wish.status = "pass";
  return wish;
}

RunSummary must(const Result<RunSummary>& run) {
  EXPECT_TRUE(run.ok()) << (run ? "" : run.error().one_line());
  return run ? *run : RunSummary();
}

std::string why_not(const Result<RunSummary>& run) {
  EXPECT_FALSE(run.ok());
  return run ? "" : run.error().one_line();
}

// What the published row was made of: 20 steps, the first of which warms up.
MetricsReading published_run() {
  std::string text;
  for (int i = 1; i <= 20; ++i) {
    StepMetrics step;
    step.iter = i;
    step.loss = i == 20 ? 14.734155 : 15;
    step.dt_s = i == 1 ? 5.537 : 2.6528;
    step.tokens_per_s = i == 1 ? 2959 : 6175.041;
    step.tokens_per_s_per_gpu = i == 1 ? 369.9 : 771.880125;
    step.mfu_percent = i == 1 ? 1.11 : 2.3196;
    step.tflops_per_gpu = i == 1 ? 3.468 : 7.237;
    text += metrics_line(step, 0, test_time_s - 20 + i);
  }
  return reading_of(text);
}

TEST(Amsc, TheHeaderIsTheDashboards) {
  EXPECT_EQ(amsc_header,
            "timestamp,system,config,nodes,gpus,status,wall_time_sec,throughput_tokens_per_sec,"
            "throughput_tokens_per_sec_per_gpu,mfu,tflops,final_loss,steps,error");
}

TEST(Amsc, ThePublishedRowComesOutToTheDigit) {
  Provenance provenance;
  provenance.command = split_words(
      "train --model agpt-2b --tp 1 --dataset random --train-iters 20 --batch-size 1 --seq-len "
      "2048");
  ExportWish wish = wish_of("agpt-2b/bs1/seq2048/tp1", 2, 8);
  wish.wall_time_s = 55.941;
  EXPECT_EQ(amsc_row(must(summarize(published_run(), provenance, wish, kNow_s))),
            "2026-08-24T13:08:50Z,Perlmutter,agpt-2b/bs1/seq2048/tp1,2,8,pass,55.941,6175.041,"
            "771.88,2.32,7.237,14.734155,20,");
}

TEST(Amsc, WallTimeIsTheSumOfAllStepsWarmUpIncluded) {
  const RunSummary run = must(summarize(published_run(), {}, wish_of("x", 2, 8), kNow_s));
  EXPECT_NEAR(run.wall_time_s, 5.537 + 19 * 2.6528, 1e-9);
  EXPECT_EQ(short_number(run.wall_time_s, 3), "55.94");
}

TEST(Amsc, ThroughputIsTheMedianAfterOneStepOfWarmUp) {
  const MetricsReading metrics = reading_of(lines_of(published_series));
  EXPECT_EQ(must(summarize(metrics, {}, wish_of("x", 1, 12), kNow_s)).tokens_per_s, 34686);
}

TEST(Amsc, TheMeanOfAllStepsWouldBeTheWrongNumber) {
  EXPECT_EQ(std::round(reduce(published_series, Reducer::mean).value_or(0)), 29088);
  const MetricsReading metrics = reading_of(lines_of(published_series));
  ExportWish wish = wish_of("x", 1, 12);
  wish.reducer = Reducer::mean;
  EXPECT_EQ(must(summarize(metrics, {}, wish, kNow_s)).tokens_per_s, 34697);
}

TEST(Amsc, EachReducerDoesWhatItSays) {
  EXPECT_EQ(reduce(published_series, Reducer::median), (34650 + 34686) / 2.0);
  EXPECT_EQ(reduce(published_series, Reducer::max), 34833);
  EXPECT_EQ(reduce(published_series, Reducer::min), 1045);
  EXPECT_EQ(reduce(published_series, Reducer::last), 34650);
  EXPECT_EQ(reduce({not_measured, 3, INFINITY}, Reducer::last), 3);
  EXPECT_FALSE(reduce({not_measured}, Reducer::mean));
  Reducer reducer{};
  for (const std::string& word : reducer_words()) EXPECT_TRUE(parse(word, &reducer)) << word;
  EXPECT_FALSE(parse("average", &reducer));
}

TEST(Amsc, WhatWasNotMeasuredIsEmptyAndNeverZero) {
  const MetricsReading metrics = reading_of(
      "{\"metrics\": {\"train/iter\": 1, \"train/dt\": 2}, \"timestamp\": 1787576930}\n");
  EXPECT_EQ(amsc_row(must(summarize(metrics, {}, wish_of("x", 1, 4), kNow_s))),
            "2026-08-24T13:08:50Z,Perlmutter,x,1,4,pass,2,,,,,,1,");
}

TEST(Amsc, ARunThatOnlyWarmedUpHasNoThroughput) {
  const RunSummary run =
      must(summarize(reading_of(lines_of({1045})), {}, wish_of("x", 1, 12), kNow_s));
  EXPECT_FALSE(run.tokens_per_s);
  EXPECT_FALSE(run.warnings.empty());
}

TEST(Amsc, MissingProvenanceNamesTheFlagsAndGuessesNothing) {
  ExportWish wish;
  wish.config = "x";
  wish.status = "pass";
  const std::string why =
      why_not(summarize(reading_of(lines_of(published_series)), {}, wish, kNow_s));
  for (const char* flag : {"--system", "--nodes", "--gpus"}) {
    EXPECT_NE(why.find(flag), std::string::npos) << why;
  }
}

TEST(Amsc, GpusAreNotCountedByRankFiles) {
  std::string text;
  for (int rank = 0; rank < 8; ++rank) text += lines_of({1, 1}, rank);
  ExportWish wish = wish_of("x", 1, 1);
  wish.gpus.reset();
  EXPECT_NE(why_not(summarize(reading_of(text), {}, wish, kNow_s)).find("--gpus"),
            std::string::npos);
}

TEST(Amsc, WhatWasAllocatedIsToldAndNotTaken) {
  Provenance provenance;
  apply_python_values({{"MACHINE", "SunSpot"}, {"NUM_NODES", "4"}, {"NGPUS", "48"}}, &provenance);
  provenance.source = "config.json";
  ExportWish wish;
  wish.config = "x";
  const std::string why =
      why_not(summarize(reading_of(lines_of(published_series)), provenance, wish, kNow_s));
  EXPECT_NE(why.find("allocated were: nodes 4, GPUs 48"), std::string::npos) << why;
}

TEST(Amsc, FlagsOutrankWhatWasFound) {
  Provenance provenance;
  provenance.system = "SunSpot";
  provenance.nodes = 1;
  provenance.gpus = 24;
  const RunSummary run = must(
      summarize(reading_of(lines_of(published_series)), provenance, wish_of("x", 2, 12), kNow_s));
  EXPECT_EQ(run.system, "Perlmutter");
  EXPECT_EQ(run.nodes, 2);
  EXPECT_EQ(run.gpus, 12);
}

TEST(Amsc, ASpeedThatIsWrongByTheNumberOfGpusIsRefused) {
  const MetricsReading metrics = reading_of(lines_of(published_series, 0, 12));
  const std::string why = why_not(summarize(metrics, {}, wish_of("x", 1, 4), kNow_s));
  EXPECT_NE(why.find("12 times"), std::string::npos) << why;
  ExportWish wish = wish_of("x", 1, 4);
  wish.force = true;
  EXPECT_NE(must(summarize(metrics, {}, wish, kNow_s)).error.find("12 times"), std::string::npos);
}

TEST(Amsc, AnMfuAboveThePeakIsRefused) {
  StepMetrics step = step_of(1, 100, 1);
  step.mfu_percent = 156;
  StepMetrics next = step;
  next.iter = 2;
  const MetricsReading metrics = reading_of(metrics_line(step, 0, 1) + metrics_line(next, 0, 2));
  EXPECT_NE(why_not(summarize(metrics, {}, wish_of("x", 1, 1), kNow_s)).find("MFU"),
            std::string::npos);
}

Provenance of_run(const RunInfo& run) {
  Provenance provenance;
  provenance.source = "run_info.json";
  provenance.system = "Perlmutter";
  provenance.nodes = 2;
  provenance.gpus = 12;
  provenance.command = run.command;
  provenance.run = run;
  return provenance;
}

ExportWish bare(const std::string& config) {
  ExportWish wish;
  wish.config = config;
  return wish;
}

TEST(Amsc, AFallbackToSocketsIsMarkedOnTheLabelAndNoted) {
  RunInfo run;
  run.end = "success";
  run.network = {"AWS Libfabric", {"Socket"}, true, "Socket"};
  const MetricsReading metrics = reading_of(lines_of(published_series));
  RunSummary row = must(summarize(metrics, of_run(run), bare("x"), kNow_s));
  EXPECT_EQ(row.config, "x-NO-OFI-PLUGIN");
  EXPECT_EQ(row.error, "network fell back to Socket, AWS Libfabric was expected");
  row = must(summarize(metrics, of_run(run), bare("x-NO-OFI-PLUGIN"), kNow_s));
  EXPECT_EQ(row.config, "x-NO-OFI-PLUGIN");
}

TEST(Amsc, ADepartureFromTheBenchmarksCommandIsRefusedAndForcedItIsSaid) {
  RunInfo run;
  run.end = "success";
  run.command = split_words(
      "train --model agpt-2b --tp 1 --dataset random --train-iters 20 --batch-size 2 --seq-len "
      "2048");
  const MetricsReading metrics = reading_of(lines_of(published_series));
  ExportWish wish = bare("agpt-2b/bs1/seq2048/tp1");
  EXPECT_NE(why_not(summarize(metrics, of_run(run), wish, kNow_s)).find("batch 2 instead of 1"),
            std::string::npos);
  wish.force = true;
  EXPECT_EQ(must(summarize(metrics, of_run(run), wish, kNow_s)).error,
            "departs from the benchmark's own command: batch 2 instead of 1");
}

TEST(Amsc, AttemptsSwapsAndRedoneStepsAreInTheNote) {
  RunInfo run;
  run.end = "success";
  run.attempts.resize(2);
  run.swaps = {{1, "nid2", "nid3", "scheduler"}};
  const MetricsReading metrics =
      reading_of(lines_of({9, 100, 100, 100}) + lines_of({200, 200, 200}, 0, 12, 3));
  const RunSummary row = must(summarize(metrics, of_run(run), bare("x"), kNow_s));
  EXPECT_EQ(row.steps, 5);
  EXPECT_EQ(row.wall_time_s, 5);
  EXPECT_EQ(row.error,
            "2 attempts, nid2 swapped for nid3 after attempt 1; 2 steps were done again and "
            "counted once");
}

TEST(Amsc, TheStatusIsTheRecordsAndAMissingEndIsAskedFor) {
  RunInfo run;
  const MetricsReading metrics = reading_of(lines_of(published_series));
  EXPECT_NE(why_not(summarize(metrics, of_run(run), bare("x"), kNow_s)).find("--status"),
            std::string::npos);
  run.end = "exhausted";
  RunSummary row = must(summarize(metrics, of_run(run), bare("x"), kNow_s));
  EXPECT_EQ(row.status, "fail");
  EXPECT_EQ(row.error, "ended with exhausted");
  ExportWish wish = bare("x");
  wish.status = "pass";
  row = must(summarize(metrics, of_run(run), wish, kNow_s));
  EXPECT_EQ(row.status, "pass");
  EXPECT_EQ(row.error, "the run's own record ends with exhausted");
}

TEST(Amsc, ATornEndIsAReasonToAskHowItEnded) {
  ExportWish wish = wish_of("x", 1, 12);
  wish.status.clear();
  EXPECT_NE(why_not(summarize(reading_of(lines_of(published_series) + "{\"to"), {}, wish, kNow_s))
                .find("--status"),
            std::string::npos);
  const RunSummary row = must(summarize(reading_of(lines_of(published_series)), {}, wish, kNow_s));
  EXPECT_EQ(row.status, "pass");
  EXPECT_NE(join(row.warnings, "\n").find("exported as pass"), std::string::npos);
}

TEST(Amsc, ALossThatIsNoNumberIsEmptyAndSaid) {
  std::string text = lines_of(published_series);
  text +=
      "{\"rank\": 0, \"metrics\": {\"train/iter\": 7, \"train/loss\": NaN, \"train/dt\": 1, "
      "\"train/tps\": NaN}}\n";
  const RunSummary row = must(summarize(reading_of(text), {}, wish_of("x", 1, 12), kNow_s));
  EXPECT_FALSE(row.final_loss);
  EXPECT_EQ(row.tokens_per_s, 34686);
  EXPECT_EQ(row.error, "the last loss is no number");
}

TEST(Amsc, IterationsWithoutARecordAreSaid) {
  const MetricsReading metrics = reading_of(lines_of({1, 1, 1}) + lines_of({1}, 0, 12, 6));
  const RunSummary row = must(summarize(metrics, {}, wish_of("x", 1, 12), kNow_s));
  EXPECT_EQ(row.steps, 4);
  EXPECT_EQ(row.error, "2 of 6 iterations have no record");
}

TEST(Amsc, ALabelLikeAFormulaIsRefusedAndATextKeepsItsBytesBehindAWord) {
  const MetricsReading metrics = reading_of(lines_of(published_series));
  EXPECT_FALSE(summarize(metrics, {}, wish_of("=1+1", 1, 12), kNow_s).ok());
  EXPECT_FALSE(summarize(metrics, {}, wish_of("a\x1b[31m", 1, 12), kNow_s).ok());
  ExportWish wish = wish_of("x", 1, 12);
  wish.error = "=HYPERLINK(\"http://x\",\"y\")";
  EXPECT_NE(amsc_row(must(summarize(metrics, {}, wish, kNow_s)))
                .find(",6,\"note: =HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            std::string::npos);
}

TEST(Amsc, WithoutTimesOfStepsTheWallTimeIsAskedFor) {
  const MetricsReading metrics =
      reading_of("{\"timestamp\": 1787576930, \"metrics\": {\"train/iter\": 1}}\n");
  EXPECT_NE(why_not(summarize(metrics, {}, wish_of("x", 1, 1), kNow_s)).find("--wall-time-sec"),
            std::string::npos);
  ExportWish wish = wish_of("x", 1, 1);
  wish.wall_time_s = 12.5;
  EXPECT_EQ(must(summarize(metrics, {}, wish, kNow_s)).wall_time_s, 12.5);
}

TEST(Amsc, VitWeathersThreeColumns) {
  std::string text;
  for (int i = 1; i <= 4; ++i) {
    StepMetrics step;
    step.iter = i;
    step.dt_s = i == 1 ? 9 : 0.25;
    step.samples_per_s = i == 1 ? 1 : 128;
    text += metrics_line(step, 0, i);
  }
  EXPECT_EQ(vit_weather_header, "configuration_name,samples_per_sec,iters_per_sec");
  EXPECT_EQ(
      vit_weather_row(must(summarize(reading_of(text), {}, wish_of("vit,big", 1, 4), kNow_s))),
      "\"vit,big\",128,4");
}

TEST(Amsc, NumbersHaveNoDigitsThatSayNothing) {
  EXPECT_EQ(short_number(771.880125, 3), "771.88");
  EXPECT_EQ(short_number(34686, 3), "34686");
  EXPECT_EQ(short_number(100, 3), "100");
  EXPECT_EQ(short_number(0.0001, 3), "0");
  EXPECT_EQ(short_number(-0.0001, 3), "0");
}

}  // namespace
}  // namespace ezpz::bench
