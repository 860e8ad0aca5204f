#include "train/app/run.h"

#include <fmt/core.h>

#include "base/file.h"
#include "base/log.h"
#include "bench/flops.h"
#include "train/kernels/gemm.h"
#include "train/kernels/simd.h"
#include "train/loop/metrics.h"
#include "train/loop/trainer.h"

namespace ezpz::train {
namespace {

void say(const std::string& line) { write_all(1, line + "\n"); }

double announce(const TrainOptions& options) {
  const double peak_gflops = measured_peak_gflops();
  const bench::ModelShape& s = options.shape;
  say(fmt::format("model={} params={} dim={} layers={} heads={}/{} hidden={} vocab={}{} seq={}",
                  s.name, bench::parameter_count(s), s.dim, s.layers, s.heads, s.kv_heads, s.hidden,
                  s.vocab, s.tied ? " tied" : "", options.seq));
  say(fmt::format("threads={} simd={} sgemm_peak_gflops={:.1f} blas='{}'", threads(), simd().name,
                  peak_gflops, blas_flavour()));
  if (options.compile) {
    say("--compile: nothing to do; forward, backward and optimizer are fused kernels already");
  }
  return peak_gflops * 1e9;
}

}  // namespace

int train(const TrainOptions& options, const Place& place) {
  if (place.local_rank == 0) say(place.banner());
  if (place.world > 1) {
    log::error("this ezpz-train trains alone only");
    return 2;
  }
  const std::unique_ptr<Comm> comm = make_alone();
  const double peak_flops = announce(options);
  Trainer trainer(options, comm.get());
  const bench::TokenCost cost = bench::token_cost(options.shape, options.seq);
  Metrics metrics(trainer.tokens_per_step(), place.world, static_cast<double>(cost.total()),
                  peak_flops);
  for (long i = 0; i < options.steps; ++i) {
    const StepReport report = trainer.step();
    metrics.add(report);
    if (place.rank == 0) say(metrics.line(report));
  }
  if (place.rank == 0 && options.json) {
    say(metrics.summary(bench::parameter_count(options.shape)));
  }
  return 0;
}

}  // namespace ezpz::train
