#include "train/app/run.h"

#include <fmt/core.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/flops.h"
#include "train/kernels/gemm.h"
#include "train/kernels/simd.h"
#include "train/loop/metrics.h"
#include "train/loop/trainer.h"
#include "train/parallel/gloo.h"
#include "train/parallel/shm.h"

namespace ezpz::train {
namespace {

void say(const std::string& line) { write_all(1, line + "\n"); }

// Every rank measures its own peak; rank 0 tells.
double announce(const TrainOptions& options, const Place& place) {
  const double peak_gflops = measured_peak_gflops();
  if (place.rank != 0) return peak_gflops * 1e9;
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

// SIGTERM (and Ctrl-C) ask; the run ends after the step that is going on.
volatile sig_atomic_t stop_asked = 0;
void ask_to_stop(int /*signal*/) { stop_asked = 1; }

void listen_for_stop() {
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

int train_with(const TrainOptions& options, const Place& place, const Groups& groups) {
  const double peak_flops = announce(options, place);
  Trainer trainer(options, groups.data.get(), groups.tensor.get());
  const bench::TokenCost cost = bench::token_cost(options.shape, options.seq);
  Metrics metrics(trainer.tokens_per_step(), place.world, static_cast<double>(cost.total()),
                  peak_flops);
  bool stopped = false;
  for (long i = 0; i < options.steps && !stopped; ++i) {
    const StepReport report = trainer.step(stop_asked != 0);
    metrics.add(report);
    if (place.rank == 0) say(metrics.line(report));
    stopped = report.stop && report.step < options.steps;
    if (stopped && place.rank == 0) {
      say(fmt::format("stopped step={} of {}", report.step, options.steps));
    }
  }
  if (place.rank == 0 && options.json) {
    say(metrics.summary(bench::parameter_count(options.shape)));
  }
  // Rank 0 keeps the place where all meet: it leaves last.
  groups.world->barrier();
  return stopped ? kStoppedEarly : 0;
}

}  // namespace

int train(const TrainOptions& options, const Place& place) {
  if (place.world % options.tp != 0) {
    log::error(
        fmt::format("{} ranks do not divide into groups of {}: --tp", place.world, options.tp));
    return 2;
  }
  listen_for_stop();
  if (place.local_rank == 0) say(place.banner());
  try {
    Groups groups = place.world > 1 ? make_gloo(place, options.tp)
                                    : Groups{make_alone(), make_alone(), make_alone()};
    if (options.transport == "auto") {
      for (auto* group : {&groups.data, &groups.tensor}) {
        *group = over_shm(std::move(*group), place.host);
      }
    }
    return train_with(options, place, groups);
  } catch (const PeersLost& lost) {
    log::error(fmt::format("rank {} on {} lost its peers: {}", place.rank,
                           printable(place.host, 80), lost.what()));
    // Threads of the transport may be waiting for the dead: nothing is torn down.
    fflush(nullptr);
    _exit(kPeersLost);
  }
}

}  // namespace ezpz::train
