// How fast metrics are read: a line at a time, as the reader's inner loop does it, and a stream in
// the pieces in which files come. A directory of 1 GB should take seconds.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/metrics_dir.h"

namespace {

using namespace ezpz::bench;

std::string metrics_text(int64_t lines) {
  std::string text;
  for (int64_t i = 1; i <= lines; ++i) {
    StepMetrics step;
    step.iter = i;
    step.loss = 14.734155 / static_cast<double>(i);
    step.dt_s = 2.6528;
    step.tokens_per_s = 6175.041;
    step.tokens_per_s_per_gpu = 771.880125;
    step.mfu_percent = 2.3196;
    step.tflops_per_gpu = 7.237;
    text += metrics_line(step, 0, 1787576930.0 + static_cast<double>(i));
  }
  return text;
}

void read_line(benchmark::State& state) {
  const std::string line = metrics_text(1);
  MetricsRecord record;
  for (auto _ : state) benchmark::DoNotOptimize(read_metrics_line(line, &record));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * line.size()));
}
BENCHMARK(read_line);

void read_stream(benchmark::State& state) {
  const std::string text = metrics_text(100'000);
  constexpr size_t piece = 1U << 20U;
  for (auto _ : state) {
    MetricsReading reading;
    MetricsFeed feed(&reading);
    feed.begin_file(0);
    for (size_t at = 0; at < text.size(); at += piece) {
      feed.feed(std::string_view(text).substr(at, piece));
    }
    feed.end_file();
    benchmark::DoNotOptimize(reading.steps.size());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(read_stream);

}  // namespace

BENCHMARK_MAIN();
