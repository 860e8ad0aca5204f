// From a run's metrics and its provenance to one row of a benchmark's table. Pure. Readable as
// C++17.
//
// A number that cannot be stood behind is refused, not published with a shrug: see refusals().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/cells.h"
#include "bench/metrics_dir.h"
#include "bench/provenance.h"

namespace ezpz::bench {

enum class Reducer { median, mean, max, min, last };
bool parse(std::string_view word, Reducer*);
std::vector<std::string> reducer_words();
// Of those that are numbers; nothing when there are none.
std::optional<double> reduce(std::vector<double> values, Reducer);

// What the user said; it outranks what was found.
struct ExportWish {
  std::string config;
  std::string system;
  std::optional<int> nodes;
  std::optional<int> gpus;
  std::string status;  // "pass", "fail"; empty: as the run's record says
  std::string error;
  long warmup = 1;
  Reducer reducer = Reducer::median;
  std::optional<double> wall_time_s;
  bool force = false;
};

// One run, in the units of the table. What was not measured is nothing, never 0.
struct RunSummary {
  std::string timestamp;  // "2026-08-24T13:08:50Z"
  std::string system;
  std::string config;
  int nodes = 0;
  int gpus = 0;
  std::string status;
  double wall_time_s = 0;
  std::optional<double> tokens_per_s;  // of all GPUs together
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> mfu_percent;  // of one GPU's peak, 0 to 100
  std::optional<double> tflops_per_gpu;
  std::optional<double> final_loss;
  int64_t steps = 0;
  std::string error;
  std::optional<double> samples_per_s;
  std::optional<double> iters_per_s;
  std::vector<std::string> warnings;  // for the terminal
};

// now_s: only for a run whose records have no time.
Result<RunSummary> summarize(const MetricsReading&, const Provenance&, const ExportWish&,
                             double now_s);

// The medians and the like alone, without judging: for tables of runs.
struct Speeds {
  std::optional<double> tokens_per_s;
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> mfu_percent;
  std::optional<double> tflops_per_gpu;
  std::optional<double> samples_per_s;
  std::optional<double> iters_per_s;
  std::optional<double> final_loss;
  std::optional<double> wall_time_s;  // the sum of the steps' times
  int64_t untimed_steps = 0;          // which have none
};
Speeds speeds_of(const MetricsReading&, long warmup, Reducer);

extern const std::string_view amsc_header;
std::string amsc_row(const RunSummary&);
extern const std::string_view vit_weather_header;
std::string vit_weather_row(const RunSummary&);

// 55.941, 771.88, 20: at most so many decimals, none that say nothing.
std::string short_number(double value, int decimals);

}  // namespace ezpz::bench
