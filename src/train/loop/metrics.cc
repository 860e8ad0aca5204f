#include "train/loop/metrics.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace ezpz::train {

Metrics::Metrics(int64_t tokens_per_step, int ranks, double flop_per_token, double peak_flops)
    : tokens_per_step_(tokens_per_step),
      ranks_(ranks),
      flop_per_token_(flop_per_token),
      peak_flops_(peak_flops) {}

void Metrics::add(const StepReport& step) { steps_.push_back(step); }

double Metrics::tflops(double seconds) const {
  return flop_per_token_ * static_cast<double>(tokens_per_step_) / seconds / ranks_ / 1e12;
}

std::string Metrics::line(const StepReport& s) const {
  const double flops = tflops(s.seconds);
  return fmt::format(
      "step={} loss={:.6f} dt={:.4f} tps={:.0f} mfu={:.2f} tflops={:.4f} grad_norm={:.6f} lr={:g}",
      s.step, s.loss, s.seconds, static_cast<double>(tokens_per_step_) / s.seconds,
      100 * flops * 1e12 / peak_flops_, flops, s.gradient_norm, s.lr);
}

bench::StepMetrics Metrics::record(const StepReport& s) const {
  bench::StepMetrics m;
  m.iter = s.step;
  m.loss = s.loss;
  m.dt_s = s.seconds;
  m.tokens_per_s = static_cast<double>(tokens_per_step_) / s.seconds;
  m.tokens_per_s_per_gpu = m.tokens_per_s / ranks_;
  m.tflops_per_gpu = tflops(s.seconds);
  m.mfu_percent = 100 * m.tflops_per_gpu * 1e12 / peak_flops_;
  return m;
}

std::optional<double> Metrics::median_seconds() const {
  if (steps_.size() < 2) return std::nullopt;
  std::vector<double> times;
  for (size_t i = 1; i < steps_.size(); ++i) times.push_back(steps_[i].seconds);
  std::sort(times.begin(), times.end());
  const size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

std::string Metrics::summary(int64_t parameters) const {
  const std::optional<double> seconds = median_seconds();
  const auto measured = [&seconds](double value) { return seconds ? Json(value) : Json(nullptr); };
  const double dt = seconds.value_or(1);
  const double tps = static_cast<double>(tokens_per_step_) / dt;
  const bool finite = !steps_.empty() && std::isfinite(steps_.back().loss);
  return dump(Json{
      {"steps", steps_.size()},
      {"tokens_per_sec", measured(tps)},
      {"tokens_per_sec_per_gpu", measured(tps / ranks_)},
      {"mfu", measured(100 * tflops(dt) * 1e12 / peak_flops_)},
      {"tflops", measured(tflops(dt))},
      {"final_loss", finite ? Json(steps_.back().loss) : Json(nullptr)},
      {"params", parameters},
      {"peak_rss_bytes", peak_rss_bytes()},
  });
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace ezpz::train
