// Bytes a second through the evidence stream, beside what any reader must do at the least: find the
// ends of the lines.
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <string.h>

#include <string>

#include "evidence/grammar.h"
#include "evidence/stream.h"

namespace {

constexpr size_t kLog_bytes = 32U << 20U;
constexpr size_t kChunk_bytes = 256U << 10U;

std::string log_of(const char* line_format) {
  std::string log;
  for (int step = 1; log.size() < kLog_bytes; ++step) {
    log += fmt::format(fmt::runtime(line_format), step, 2.0 + 1.0 / step);
  }
  return log;
}

const std::string& steps() {
  static const std::string log = log_of(
      "step={} loss={:.6f} tokens/s=51234.1 lr=3.0e-04 grad_norm=0.712 mem=31.2GiB "
      "elapsed=12.34s\n");
  return log;
}

const std::string& coloured() {
  static const std::string log = log_of(
      "\x1b[32m[2026-11-29 16:03:07]\x1b[0m \x1b[1mstep\x1b[0m=\x1b[36m{}\x1b[0m loss={:.6f} "
      "tokens/s=51234.1\n");
  return log;
}

const std::string& prose() {
  static const std::string log = log_of(
      "INFO worker {} finished shard {:.6f} of the preprocessing and asks for another one to work "
      "on\n");
  return log;
}

void through_stream(benchmark::State& state, const std::string& log) {
  const auto grammar = ezpz::evidence::Grammar::load();
  if (!grammar) {
    state.SkipWithError(grammar.error().one_line().c_str());
    return;
  }
  for (auto _ : state) {
    ezpz::evidence::Stream stream(*grammar);
    for (size_t at = 0; at < log.size(); at += kChunk_bytes) {
      stream.feed(std::string_view(log).substr(at, kChunk_bytes));
    }
    stream.finish();
    benchmark::DoNotOptimize(stream.progress().last_step);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * log.size()));
}

void count_lines(benchmark::State& state) {
  const std::string& log = steps();
  for (auto _ : state) {
    int64_t lines = 0;
    const char* at = log.data();
    const char* end = at + log.size();
    while ((at = static_cast<const char*>(memchr(at, '\n', static_cast<size_t>(end - at)))) !=
           nullptr) {
      ++lines;
      ++at;
    }
    benchmark::DoNotOptimize(lines);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * log.size()));
}

void load_grammar(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ezpz::evidence::Grammar::load().ok());
}

BENCHMARK(count_lines);
BENCHMARK_CAPTURE(through_stream, steps, steps());
BENCHMARK_CAPTURE(through_stream, coloured, coloured());
BENCHMARK_CAPTURE(through_stream, prose, prose());
BENCHMARK(load_grammar);

}  // namespace

BENCHMARK_MAIN();
