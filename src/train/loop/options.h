// What a run is asked to do: the flags of ezpz-train, parsed and checked. Readable as C++17.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/flops.h"
#include "bench/model.h"
#include "train/loop/fault.h"

namespace ezpz::train {

struct TrainOptions {
  bench::ModelShape shape;
  int64_t seq = 0;
  int64_t batch = 1;       // sequences a data-parallel rank and micro-step
  int64_t grad_accum = 1;  // micro-steps a step
  long steps = 20;
  // A Hugging Face folder that the weights come from; empty: counted from the seed.
  std::string base_dir;
  float norm_eps = 1e-5F;
  std::vector<double> rope_frequencies;  // empty: by shape.rope_theta
  std::string dataset = "random";        // or a text, tokens, a folder of them, a stream's URL
  std::string tokenizer = "byte";        // or a sentencepiece model, of a text
  std::string data_cache = "ezpz-data";
  uint64_t seed = 42;
  double lr = 3e-4;
  double min_lr = 0;
  long warmup_steps = 0;
  double weight_decay = 0.1;
  double clip = 1.0;
  std::string optimizer = "adamw";
  std::string recompute = "none";
  bench::Lora lora;  // off: all weights are trained
  double lora_alpha = 16;
  double lora_dropout = 0;
  std::string lora_adapter;  // a PEFT folder to begin with; empty: B is zero
  int tp = 1;                // ranks that divide each matrix
  int dp_shard = 0;          // ranks that share one copy of the model; 0: all data-parallel ones
  int threads = 0;           // 0: the cores this rank owns
  std::string transport = "auto";
  bool compile = false;
  bool json = false;
  std::string outdir;      // of checkpoints and all else that is written; empty: nothing is
  long save_interval = 0;  // steps; 0: only at the end
  int keep = 2;
  std::string resume = "auto";
  bool async_save = false;
  int save_failures = 3;  // in a row, that end the run
  std::vector<Fault> faults;
  std::string export_dir;
};

// Where the flags say it all: the help text to print, instead of a run.
struct Parsed {
  TrainOptions options;
  bool help = false;
  std::string help_text;
};
Result<Parsed> parse_options(const std::vector<std::string>& words);

}  // namespace ezpz::train
