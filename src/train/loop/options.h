// What a run is asked to do: the flags of ezpz-train, parsed and checked. Readable as C++17.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/model.h"

namespace ezpz::train {

struct TrainOptions {
  bench::ModelShape shape;
  int64_t seq = 0;
  int64_t batch = 1;       // sequences a data-parallel rank and micro-step
  int64_t grad_accum = 1;  // micro-steps a step
  long steps = 20;
  std::string dataset = "random";
  uint64_t seed = 42;
  double lr = 3e-4;
  double min_lr = 0;
  long warmup_steps = 0;
  double weight_decay = 0.1;
  double clip = 1.0;
  std::string optimizer = "adamw";
  std::string recompute = "none";
  int tp = 1;       // ranks that divide each matrix
  int threads = 0;  // 0: the cores this rank owns
  std::string transport = "auto";
  bool compile = false;
  bool json = false;
};

// Where the flags say it all: the help text to print, instead of a run.
struct Parsed {
  TrainOptions options;
  bool help = false;
  std::string help_text;
};
Result<Parsed> parse_options(const std::vector<std::string>& words);

}  // namespace ezpz::train
