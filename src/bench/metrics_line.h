// One line of a metrics file, written and understood. Readable as C++17.
//
//   {"timestamp": "2026-08-24T13:08:50.123Z", "rank": 0, "metrics": {"train/iter": 1, ...}}
//
// The reader also takes what the Python tool writes: a timestamp in seconds since 1970, names with
// or without "train/", NaN and Infinity as Python spells them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace ezpz::bench {

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

// What one step of training measured. not_measured (NaN) is written as null.
struct StepMetrics {
  int64_t iter = 0;  // counted from 1
  double loss = not_measured;
  double dt_s = not_measured;
  double tokens_per_s = not_measured;  // of all ranks together
  double tokens_per_s_per_gpu = not_measured;
  double mfu_percent = not_measured;  // of one GPU's peak
  double tflops_per_gpu = not_measured;
  double samples_per_s = not_measured;  // of all ranks together; left out when not measured
};

struct MetricsRecord {
  std::optional<double> time_s;  // since 1970; nothing: none, or one without a zone
  std::optional<int64_t> rank;
  StepMetrics step;
  bool has_nan = false;  // of what we read, something was written as NaN or an infinity
};

enum class LineKind {
  step,     // a step of training
  other,    // a record of metrics without a step: an evaluation, the precision that was chosen
  foreign,  // whole JSON, but no record of metrics: a log's
  damaged,  // not whole JSON: torn, or never JSON
};
// Strict: what is not JSON to the last byte is damaged. record is only whole for LineKind::step.
LineKind read_metrics_line(std::string_view line, MetricsRecord* record);

// With its newline.
std::string metrics_line(const StepMetrics&, int rank, double wall_s);

// "2026-08-24T13:08:50.123Z", "...+02:00", with or without a fraction. Nothing without a zone: a
// time of day that may be anywhere is no time.
std::optional<double> parse_iso8601(std::string_view);

}  // namespace ezpz::bench
