// What a run reports: the line of a step and the summary at the end. Readable as C++17.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/metrics_line.h"

namespace ezpz::train {

struct StepReport {
  long step = 0;  // counted from 1
  double loss = 0;
  double gradient_norm = 0;
  double lr = 0;
  double seconds = 0;
  bool stop = false;  // some rank was asked to stop: all end after this step
};

class Metrics {
 public:
  // flop_per_token: of training; peak_flops: of one rank's device.
  Metrics(int64_t tokens_per_step, int ranks, double flop_per_token, double peak_flops);

  void add(const StepReport&);
  // "step=18 loss=10.277123 dt=0.2100 tps=9800 mfu=31.20 tflops=0.042 grad_norm=1.234567 lr=0.0003"
  [[nodiscard]] std::string line(const StepReport&) const;

  // The same for the file of this rank (bench/metrics_log.h).
  [[nodiscard]] bench::StepMetrics record(const StepReport&) const;

  // One JSON object on one line. What was not measured is null: the speed needs two steps, because
  // the first one warms up.
  [[nodiscard]] std::string summary(int64_t parameters) const;

 private:
  [[nodiscard]] std::optional<double> median_seconds() const;
  [[nodiscard]] double tflops(double seconds) const;  // of one rank

  int64_t tokens_per_step_;
  int ranks_;
  double flop_per_token_;
  double peak_flops_;
  std::vector<StepReport> steps_;
};

// The most memory that this process has had resident.
int64_t peak_rss_bytes();

}  // namespace ezpz::train
