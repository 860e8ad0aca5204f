#include "train/loop/options.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/flags.h"
#include "base/text.h"
#include "train/weights/hf_config.h"

namespace ezpz::train {
namespace {

struct Raw {
  std::string model = "debug";
  std::optional<long> dim, layers, heads, kv_heads, hidden, vocab, seq;
  std::optional<long> batch, accum, steps, seed, warmup, threads, tp, dp_shard;
  std::optional<long> lora_rank, save_interval, keep, save_failures;
  std::string lora_target = "attn";
  std::string fault;
  bool tied = false;
};

// A number with a fraction.
Flag decimal(const std::string& name, const std::string& value, const std::string& help,
             double* target) {
  Flag flag;
  flag.names = {name};
  flag.value = value;
  flag.help = help;
  flag.set = [name, target](std::string_view text) -> Status {
    const std::optional<double> number = parse_double(text);
    if (!number || !std::isfinite(*number) || *number < 0) {
      return Error{"not a number of 0 or more: " + printable(text, 40), name, ""};
    }
    *target = *number;
    return success();
  };
  return flag;
}

std::string preset_names() {
  std::vector<std::string> names;
  for (const auto& shape : bench::model_presets()) names.push_back(shape.name);
  return join(names, ", ");
}

FlagTable make_table(Raw* raw, TrainOptions* options) {
  FlagTable table(
      "ezpz-train [flags] | ezpz-train tokenize OUT.tok TEXT...",
      "Trains a Llama-style language model: alone, or as a rank of any launcher. Prints "
      "a line a step with the loss, tokens/s and MFU.");
  table.section("Model");
  table.add_string({"--model"}, "NAME",
                   "A preset (" + preset_names() +
                       "), or a Hugging Face Llama folder, whose weights are then loaded. "
                       "Default: debug.",
                   &raw->model);
  table.add_int({"--dim"}, "N", "Model width.", 1, &raw->dim);
  table.add_int({"--n-layers"}, "N", "Blocks.", 1, &raw->layers);
  table.add_int({"--n-heads"}, "N", "Query heads.", 1, &raw->heads);
  table.add_int({"--n-kv-heads"}, "N", "Key and value heads; divide the query heads.", 1,
                &raw->kv_heads);
  table.add_int({"--hidden-dim"}, "N", "Width of the feed-forward net.", 1, &raw->hidden);
  table.add_int({"--vocab-size"}, "N", "Tokens of the vocabulary.", 2, &raw->vocab);
  table.add_switch({"--tied"}, "The output matrix is the embedding.", &raw->tied);

  table.section("Run");
  table.add_int({"--train-iters"}, "N", "Steps to train. Default: 20.", 1, &raw->steps);
  table.add_int({"--batch-size"}, "N", "Sequences of a rank in a micro-step. Default: 1.", 1,
                &raw->batch);
  table.add_int({"--seq-len"}, "N", "Tokens of a sequence. Default: the preset's.", 1, &raw->seq);
  table.add_int({"--grad-accum"}, "N", "Micro-steps whose gradients are one step. Default: 1.", 1,
                &raw->accum);
  table.add_string(
      {"--dataset"}, "WHAT",
      "random: a made-up language that can be learnt, by --seed. Else a text file, a "
      "file or folder of tokens (*.tok, see `ezpz-train tokenize`), or the http(s) URL "
      "of a stream's index. Default: random.",
      &options->dataset);
  table.add_string({"--tokenizer"}, "T",
                   "Of a text: byte (a byte is a token), or a sentencepiece tokenizer.model. "
                   "Default: byte.",
                   &options->tokenizer);
  table.add_string({"--data-cache"}, "DIR",
                   "Where tokenized texts and fetched streams are kept. Default: ezpz-data.",
                   &options->data_cache);
  table.add_int({"--seed"}, "N", "Of initial values, data and their order. Default: 42.", 0,
                &raw->seed);
  table.add_choice({"--recompute"},
                   "What the backward pass computes again instead of keeping it: none; selective "
                   "(norms and the feed-forward net's inner products); full (all but each block's "
                   "input). Default: none.",
                   {"none", "selective", "full"}, &options->recompute);
  table.add_int({"--threads"}, "N", "Threads of this rank. Default: the cores it owns.", 1,
                &raw->threads);
  table.add_int(
      {"--tp"}, "N",
      "Ranks that divide each matrix (tensor parallel); must divide the ranks, heads, kv "
      "heads, hidden width and vocabulary. The rest are data-parallel (FSDP). Default: 1.",
      1, &raw->tp);
  table.add_choice({"--transport"},
                   "How ranks speak to each other: auto (shared memory when all are on one node, "
                   "else gloo), or gloo (TCP) always. Default: auto.",
                   {"auto", "gloo"}, &options->transport);
  table.add_switch({"--compile"}, "Accepted for scripts' sake: the kernels are fused already.",
                   &options->compile);

  table.add_int({"--dp-shard"}, "N",
                "Data-parallel ranks that share one copy of the model (FSDP); groups of so many "
                "are replicas. Default: all of them.",
                1, &raw->dp_shard);

  table.section("LoRA");
  table.add_int({"--lora-rank"}, "R",
                "Train adapters of rank R; the model's own weights are frozen. 0: train all "
                "weights. Default: 0.",
                0, &raw->lora_rank);
  table.add(decimal("--lora-alpha", "X", "The adapters act with X / R. Default: 16.",
                    &options->lora_alpha));
  table.add(decimal("--lora-dropout", "P", "Of the adapters' inputs. Default: 0.",
                    &options->lora_dropout));
  table.add_string({"--lora-adapter"}, "DIR",
                   "Begin with the adapter of this PEFT folder (adapter_config.json).",
                   &options->lora_adapter);
  table.add_choice({"--lora-target"}, "Which matrices are adapted. Default: attn.",
                   {"attn", "mlp", "attn,mlp"}, &raw->lora_target);

  table.section("Optimizer");
  table.add_choice({"--optimizer"}, "adamw (default), or plain sgd.", {"adamw", "sgd"},
                   &options->optimizer);
  table.add(decimal("--lr", "X", "Learning rate after the warm-up. Default: 3e-4.", &options->lr));
  table.add(decimal("--min-lr", "X", "Where its cosine ends. Default: 0.", &options->min_lr));
  table.add_int({"--warmup-iters"}, "N", "Steps of linear warm-up. Default: 0.", 0, &raw->warmup);
  table.add(decimal("--weight-decay", "X", "Of matrices; norms have none. Default: 0.1.",
                    &options->weight_decay));
  table.add(decimal("--clip", "X", "Largest global norm of the gradients; 0: no limit. Default: 1.",
                    &options->clip));

  table.section("Output");
  table.add_string({"--outdir"}, "DIR",
                   "Where checkpoints (and LoRA adapters) go; all ranks must see it. Default: "
                   "nothing is written.",
                   &options->outdir);
  table.add_int({"--save-interval"}, "N",
                "Save a checkpoint every N steps, besides at the end and when asked to stop. "
                "0: only then. Default: 0.",
                0, &raw->save_interval);
  table.add_int({"--keep"}, "K", "Checkpoints that stay. Default: 2.", 1, &raw->keep);
  table.add_switch({"--async-save"}, "Write checkpoints behind the training, from a copy.",
                   &options->async_save);
  table.add_int({"--save-failures"}, "N",
                "End with an error after so many saves in a row have failed; until then the run "
                "goes on. Default: 3.",
                1, &raw->save_failures);
  table.add_string({"--resume"}, "auto|none|DIR",
                   "auto: go on from the newest good checkpoint under --outdir, if there is one. "
                   "DIR: from that checkpoint, or the newest under it. Default: auto.",
                   &options->resume);
  table.add_string({"--export"}, "DIR",
                   "At the end write the weights as a Hugging Face folder; LoRA adapters are "
                   "merged in. Needs --outdir.",
                   &options->export_dir);
  table.add_string({"--fault"}, "F",
                   "For tests: kill@STEP, hang@STEP, exit@STEP[:code=C] or enospc@STEP[:times=N], "
                   "with :rank=R, :attempt=A|every (1), :host=H; several with commas.",
                   &raw->fault);
  table.add_switch({"--json"}, "End with one JSON object on a line of its own (rank 0).",
                   &options->json);
  table.epilogue(
      "Rank and peers come from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or from the "
      "variables of PALS, PMI, Open MPI or SLURM.\n\n"
      "Exit codes: 0 all steps done; 2 bad usage or environment; 75 stopped by SIGTERM or SIGINT "
      "after a whole step, before the last; 76 peers lost, one line on stderr says what was seen; "
      "77 checkpoints could not be saved, again and again; 1 anything else.");
  return table;
}

Status check_tp(const bench::ModelShape& shape, long tp) {
  struct Row {
    const char* what;
    int64_t count;
  };
  for (const Row& row :
       {Row{"heads", shape.heads}, Row{"kv heads", shape.kv_heads},
        Row{"the hidden width", shape.hidden}, Row{"the vocabulary", shape.vocab}}) {
    if (row.count % tp != 0) {
      return Error{
          "does not divide " + std::string(row.what) + " (" + std::to_string(row.count) + ")",
          "--tp " + std::to_string(tp), "each rank has the same part of every matrix"};
    }
  }
  return success();
}

// The model of a Hugging Face folder: all but the weights.
Result<bench::ModelShape> shape_of_folder(const std::string& dir, TrainOptions* options) {
  const Result<HfConfig> config = read_hf_config(dir);
  if (!config) return config.error();
  bench::ModelShape shape;
  shape.name = dir;
  shape.dim = config->hidden_size;
  shape.layers = config->num_hidden_layers;
  shape.heads = config->num_attention_heads;
  shape.kv_heads = config->num_key_value_heads;
  shape.hidden = config->intermediate_size;
  shape.vocab = config->vocab_size;
  shape.seq = std::min<int64_t>(config->max_position_embeddings, 2048);
  shape.rope_theta = config->rope_theta;
  shape.tied = config->tie_word_embeddings;
  if (config->head_dim * shape.heads != shape.dim) {
    return Error{"heads of another width than dim / heads: " + std::to_string(config->head_dim),
                 "--model " + printable(dir, 200), "such a model cannot be trained here yet"};
  }
  options->base_dir = dir;
  options->norm_eps = static_cast<float>(config->rms_norm_eps);
  options->rope_frequencies = rope_frequencies(*config);
  return shape;
}

Result<bench::ModelShape> shape_of(const Raw& raw, TrainOptions* options) {
  const bench::ModelShape* preset = bench::find_model(raw.model);
  bench::ModelShape shape;
  if (preset != nullptr) {
    shape = *preset;
  } else if (is_directory(raw.model)) {
    if (raw.dim || raw.layers || raw.heads || raw.kv_heads || raw.hidden || raw.vocab || raw.tied) {
      return Error{"the shape of a model whose weights are loaded cannot be changed",
                   "--model " + printable(raw.model, 200), "leave out --dim, --n-layers, ..."};
    }
    Result<bench::ModelShape> of_folder = shape_of_folder(raw.model, options);
    if (!of_folder) return of_folder.error();
    shape = std::move(*of_folder);
  } else {
    return Error{"no such model, and no such folder: " + printable(raw.model, 200), "--model",
                 preset_names()};
  }
  const auto override_with = [](const std::optional<long>& given, int64_t* target) {
    if (given) *target = *given;
  };
  override_with(raw.dim, &shape.dim);
  override_with(raw.layers, &shape.layers);
  override_with(raw.heads, &shape.heads);
  override_with(raw.kv_heads, &shape.kv_heads);
  if (raw.dim && !raw.hidden) shape.hidden = bench::default_hidden(shape.dim, 256);
  override_with(raw.hidden, &shape.hidden);
  override_with(raw.vocab, &shape.vocab);
  override_with(raw.seq, &shape.seq);
  shape.tied = shape.tied || raw.tied;
  const std::string trouble = bench::shape_trouble(shape);
  if (!trouble.empty()) return Error{trouble, "--model " + raw.model, ""};
  if (shape.head_dim() % 2 != 0) {
    return Error{"a head of odd width: " + std::to_string(shape.head_dim()), "--n-heads",
                 "rotary embedding turns pairs"};
  }
  return shape;
}

// What no flag alone shows.
Status check_together(const TrainOptions& o) {
  if (!o.lora_adapter.empty() && !o.lora.on()) {
    return Error{"without --lora-rank there are no adapters", "--lora-adapter", ""};
  }
  if (o.lora_dropout >= 1) return Error{"must be below 1", "--lora-dropout", ""};
  if (o.outdir.empty() && o.save_interval > 0) {
    return Error{"nowhere to save", "--save-interval", "give --outdir"};
  }
  if (o.outdir.empty() && !o.export_dir.empty()) {
    return Error{"it is written from the last checkpoint", "--export", "give --outdir"};
  }
  // Better heard of now than when all steps are done.
  std::error_code ignored;
  if (file_exists(o.export_dir) && !std::filesystem::is_empty(o.export_dir, ignored)) {
    return Error{"it is there already, and not empty", "--export " + printable(o.export_dir, 200),
                 "give another folder"};
  }
  return success();
}

}  // namespace

Result<Parsed> parse_options(const std::vector<std::string>& words) {
  Raw raw;
  Parsed parsed;
  TrainOptions& o = parsed.options;
  const FlagTable table = make_table(&raw, &o);
  if (table.wants_help(words)) {
    parsed.help = true;
    parsed.help_text = table.help();
    return parsed;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return rest.error();
  if (!rest->empty()) {
    return Error{"unexpected word: " + printable(rest->front(), 40), "", "see ezpz-train --help"};
  }
  const Result<bench::ModelShape> shape = shape_of(raw, &o);
  if (!shape) return shape.error();
  o.shape = *shape;
  o.tp = static_cast<int>(std::min(raw.tp.value_or(1), 1L << 20));
  const Status divides = check_tp(o.shape, o.tp);
  if (!divides) return divides.error();
  o.seq = o.shape.seq;
  o.batch = raw.batch.value_or(1);
  o.grad_accum = raw.accum.value_or(1);
  o.steps = raw.steps.value_or(20);
  o.seed = static_cast<uint64_t>(raw.seed.value_or(42));
  o.warmup_steps = raw.warmup.value_or(0);
  o.threads = static_cast<int>(raw.threads.value_or(0));
  o.dp_shard = static_cast<int>(raw.dp_shard.value_or(0));
  o.lora.rank = raw.lora_rank.value_or(0);
  o.lora.attention = raw.lora_target != "mlp";
  o.lora.feed_forward = raw.lora_target != "attn";
  o.save_interval = raw.save_interval.value_or(0);
  o.keep = static_cast<int>(std::min(raw.keep.value_or(2), 1L << 20));
  o.save_failures = static_cast<int>(std::min(raw.save_failures.value_or(3), 1L << 20));
  Result<std::vector<Fault>> faults = parse_faults(raw.fault);
  if (!faults) return faults.error();
  o.faults = std::move(*faults);
  const Status sound = check_together(o);
  if (!sound) return sound.error();
  return parsed;
}

}  // namespace ezpz::train
