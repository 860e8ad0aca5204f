#include "train/app/run.h"

#include <fmt/core.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/flops.h"
#include "bench/metrics_log.h"
#include "train/kernels/gemm.h"
#include "train/kernels/simd.h"
#include "train/loop/base_weights.h"
#include "train/loop/checkpoints.h"
#include "train/loop/data.h"
#include "train/loop/export.h"
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

int cannot_save(const Error& error) {
  log::error(error.one_line());
  return kCannotSave;
}

const char* target_of(const bench::Lora& lora) {
  if (!lora.attention) return "mlp";
  return lora.feed_forward ? "attn,mlp" : "attn";
}

// Which attempt of a launch this is: `ezpz launch` says so.
int attempt_of_environment() {
  const char* text = getenv("EZPZ_ATTEMPT");
  return static_cast<int>(parse_int(text != nullptr ? text : "1").value_or(1));
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

void describe(const TrainOptions& options, const Groups& groups, const Trainer& trainer) {
  if (options.lora.on()) {
    say(fmt::format("lora rank={} alpha={:g} dropout={:g} target={} trained={}", options.lora.rank,
                    options.lora_alpha, options.lora_dropout, target_of(options.lora),
                    bench::trainable_count(options.shape, options.lora)));
  }
  const int shard = (groups.shard ? groups.shard : groups.data)->size();
  say(
      fmt::format("order: tensor parallel over {}, then FSDP over {}, then {} replicas; "
                  "{} sequences a step",
                  groups.tensor->size(), shard, groups.replicate->size(),
                  trainer.tokens_per_step() / options.seq));
}

// An error that has been told; the exit code.
int failed(const Error& error) {
  log::error(error.one_line());
  return 1;
}

// What is left behind when all has been saved: LoRA adapters in PEFT's layout, whole weights.
Status write_results(const TrainOptions& options, const std::string& checkpoint) {
  if (checkpoint.empty()) return success();
  if (options.lora.on()) {
    const Status written = export_adapter(options, checkpoint, options.outdir + "/adapter");
    if (!written) return written;
    say(fmt::format("adapter={}/adapter", printable(options.outdir, 1000)));
  }
  if (options.export_dir.empty()) return success();
  const Status written = export_model(options, checkpoint, options.export_dir);
  if (written) say(fmt::format("exported={}", printable(options.export_dir, 1000)));
  return written;
}

// metrics-<rank>.jsonl in the folder of the launch, where its run_info.json is, else in --outdir;
// neither: none. What cannot be written is told once and does not end the run.
std::optional<bench::MetricsLog> open_metrics_log(const TrainOptions& options, int rank) {
  const char* of_launch = getenv("EZPZ_RUN_DIR");
  const std::string dir = of_launch != nullptr ? of_launch : options.outdir;
  if (dir.empty()) return std::nullopt;
  Result<bench::MetricsLog> opened = bench::MetricsLog::open(dir, rank);
  if (opened) return std::move(*opened);
  log::warning(opened.error().one_line());
  return std::nullopt;
}

int train_with(const TrainOptions& options, const Place& place, const Groups& groups) {
  const double peak_flops = announce(options, place);
  const auto say_on_first = [&place](const std::string& text) {
    if (place.rank == 0) say(text);
  };
  Result<Data> data = open_data(options, say);
  if (!data) return failed(data.error());
  const Mesh mesh{groups.data.get(), (groups.shard ? groups.shard : groups.data).get(),
                  groups.replicate.get(), groups.tensor.get()};
  Trainer trainer(options, mesh, std::move(*data));
  if (!options.base_dir.empty()) {
    const Status loaded = load_weights(options.base_dir, &trainer.units());
    if (!loaded) return failed(loaded.error());
  }
  if (!options.lora_adapter.empty()) {
    const Status loaded = load_adapter(options, options.lora_adapter, &trainer.trained());
    if (!loaded) return failed(loaded.error());
  }
  if (place.rank == 0) describe(options, groups, trainer);
  Faults faults(options.faults, place, attempt_of_environment(), options.outdir);
  Checkpoints checkpoints(options, groups.world.get(), groups.saver.get(), &trainer, &faults,
                          say_on_first);
  const Result<std::optional<std::string>> resumed = checkpoints.resume();
  if (!resumed) return failed(resumed.error());
  if (*resumed) {
    say_on_first(fmt::format("resumed from checkpoint step={} {}", trainer.steps(),
                             printable(**resumed, 1000)));
  }
  const bench::TokenCost cost = bench::token_cost(options.shape, options.seq, options.lora);
  Metrics metrics(trainer.tokens_per_step(), place.world, static_cast<double>(cost.total()),
                  peak_flops);
  std::optional<bench::MetricsLog> metrics_log = open_metrics_log(options, place.rank);
  bool metrics_failed = false;
  bool stopped = false;
  while (trainer.steps() < options.steps && !stopped) {
    faults.before_step(trainer.steps() + 1);
    const Result<StepReport> report = trainer.step(stop_asked != 0);
    if (!report) return failed(report.error());
    metrics.add(*report);
    if (metrics_log) {
      const Status written = metrics_log->write(metrics.record(*report));
      if (!written && !metrics_failed) log::warning(written.error().one_line());
      metrics_failed = metrics_failed || !written;
    }
    say_on_first(metrics.line(*report));
    stopped = report->stop && report->step < options.steps;
    if (stopped) break;
    const Status saved = checkpoints.after_step(report->step);
    if (!saved) return cannot_save(saved.error());
  }
  const Status saved = checkpoints.finish(trainer.steps());
  if (!saved) return cannot_save(saved.error());
  if (stopped) {
    say_on_first(fmt::format("stopped step={} of {}", trainer.steps(), options.steps));
  } else if (place.rank == 0) {
    const Status written = write_results(options, checkpoints.last());
    if (!written) return failed(written.error());
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
  const Division division{options.tp, options.dp_shard};
  const std::string trouble = division_trouble(place.world, division);
  if (!trouble.empty()) {
    log::error(trouble);
    return 2;
  }
  listen_for_stop();
  if (place.local_rank == 0) say(place.banner());
  try {
    Groups groups = place.world > 1 ? make_gloo(place, division) : alone_groups();
    if (options.transport == "auto") {
      for (auto* group : {&groups.data, &groups.shard, &groups.replicate, &groups.tensor}) {
        if (*group) *group = over_shm(std::move(*group), place.host);
      }
    }
    const int code = train_with(options, place, groups);
    if (code == 0 || code == kStoppedEarly) return code;
    // The others may be waiting for this rank: nothing is torn down in an orderly way.
    fflush(nullptr);
    _exit(code);
  } catch (const PeersLost& lost) {
    log::error(fmt::format("rank {} on {} lost its peers: {}", place.rank,
                           printable(place.host, 80), lost.what()));
    // Threads of the transport may be waiting for the dead: nothing is torn down.
    fflush(nullptr);
    _exit(kPeersLost);
  }
}

}  // namespace ezpz::train
