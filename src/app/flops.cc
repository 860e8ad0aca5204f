// `ezpz flops`: what a model costs to train by the token, and what a measured speed means.
#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/text.h"
#include "bench/device.h"
#include "bench/flops.h"

namespace ezpz::app {
namespace {

struct Question {
  bench::ModelShape shape;
  bench::Lora lora;
  int64_t batch = 1;
  int64_t ranks = 1;
  std::optional<double> tokens_per_s;
  int gpus = 1;
  std::string device;
  std::optional<double> peak_tflops;
};

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

std::string size_text(double bytes) {
  const bool large = bytes >= (1 << 30);
  return fmt::format("{:.2f} {}", bytes / (large ? 1 << 30 : 1 << 20), large ? "GiB" : "MiB");
}

std::string counted(int64_t number, const char* noun) {
  return with_commas(number) + " " + noun + (number == 1 ? "" : "s");
}

Json answer(const Question& question) {
  const bench::ModelShape& shape = question.shape;
  const bench::TokenCost cost = bench::token_cost(shape, shape.seq, question.lora);
  const bench::RankBytes bytes = bench::rank_bytes(shape, question.lora, question.ranks);
  const double tokens_per_step = static_cast<double>(question.batch * question.ranks * shape.seq);
  Json json{
      {"model", shape.name},
      {"dim", shape.dim},
      {"n_layers", shape.layers},
      {"n_heads", shape.heads},
      {"n_kv_heads", shape.kv_heads},
      {"hidden_dim", shape.hidden},
      {"vocab_size", shape.vocab},
      {"tied", shape.tied},
      {"seq_len", shape.seq},
      {"parameters", bench::parameter_count(shape)},
      {"trainable", bench::trainable_count(shape, question.lora)},
      {"gflop_per_token", static_cast<double>(cost.total()) / 1e9},
      {"gflop_per_token_forward", static_cast<double>(cost.forward) / 1e9},
      {"gflop_per_token_backward", static_cast<double>(cost.backward) / 1e9},
      {"batch_size", question.batch},
      {"ranks", question.ranks},
      {"tokens_per_step", tokens_per_step},
      {"tflop_per_step", static_cast<double>(cost.total()) * tokens_per_step / 1e12},
      {"rank_bytes",
       {{"weights", bytes.weights},
        {"gradients", bytes.gradients},
        {"optimizer", bytes.optimizer}}},
  };
  if (question.lora.on()) {
    json["lora_rank"] = question.lora.rank;
    json["lora_payload_per_block"] = bench::lora_payload(shape, question.lora, question.ranks);
  }
  if (question.tokens_per_s) {
    json["tokens_per_sec"] = *question.tokens_per_s;
    json["tokens_per_sec_per_gpu"] = *question.tokens_per_s / question.gpus;
    json["gpus"] = question.gpus;
    // Without a device there is no share of a peak: null, never 0.
    const bench::Speed speed = bench::speed_of(cost, *question.tokens_per_s, question.gpus,
                                               question.peak_tflops.value_or(1));
    json["tflops"] = speed.tflops_per_gpu;
    json["mfu"] = question.peak_tflops ? Json(speed.mfu_percent) : Json(nullptr);
  }
  if (question.peak_tflops) {
    json["device"] = question.device.empty() ? Json(nullptr) : Json(question.device);
    json["peak_tflops"] = *question.peak_tflops;
  }
  return json;
}

std::string tell(const Question& question, const Json& json) {
  const bench::ModelShape& shape = question.shape;
  const auto number = [&json](const char* name) { return json[name].get<double>(); };
  std::string text =
      fmt::format("model            {}: dim {}, {} layers, {}/{} heads, hidden {}, vocab {}{}\n",
                  shape.name, shape.dim, shape.layers, shape.heads, shape.kv_heads, shape.hidden,
                  shape.vocab, shape.tied ? ", tied" : "");
  const int64_t parameters = json["parameters"].get<int64_t>();
  const int64_t trainable = json["trainable"].get<int64_t>();
  text += fmt::format("parameters       {}", with_commas(parameters));
  if (question.lora.on()) text += fmt::format("; LoRA adds and trains {}", with_commas(trainable));
  text += fmt::format(
      "\nper token        {:.9f} GFLOP at sequence {}: forward {:.9f}, backward {:.9f}\n",
      number("gflop_per_token"), shape.seq, number("gflop_per_token_forward"),
      number("gflop_per_token_backward"));
  text += fmt::format("per step         {:.6g} TFLOP for {} tokens ({}, {} each)\n",
                      number("tflop_per_step"),
                      with_commas(static_cast<int64_t>(number("tokens_per_step"))),
                      counted(question.ranks, "rank"), counted(question.batch, "sequence"));
  const Json& bytes = json["rank_bytes"];
  text += fmt::format(
      "a rank holds     weights {}, gradients {}, optimizer {} (fp32, sharded over {})\n",
      size_text(bytes["weights"].get<double>()), size_text(bytes["gradients"].get<double>()),
      size_text(bytes["optimizer"].get<double>()), question.ranks);
  if (question.lora.on()) {
    text += fmt::format("LoRA payload     {} elements a block over {}\n",
                        with_commas(json["lora_payload_per_block"].get<int64_t>()),
                        counted(question.ranks, "rank"));
  }
  if (question.tokens_per_s) {
    text += fmt::format("at {:.9g} tokens/s on {}\n", *question.tokens_per_s,
                        counted(question.gpus, "GPU"));
    text += fmt::format("  per GPU        {:.6g} tokens/s, {:.3f} TFLOP/s\n",
                        number("tokens_per_sec_per_gpu"), number("tflops"));
    if (question.peak_tflops) {
      text += fmt::format("  MFU            {:.3f} % of {:.6g} TFLOP/s{}\n", number("mfu"),
                          *question.peak_tflops,
                          question.device.empty() ? "" : " (" + question.device + ")");
    } else {
      text += "  MFU            unknown: say --device or --peak-tflops\n";
    }
  }
  return text;
}

std::string preset_names() {
  std::vector<std::string> names;
  for (const auto& shape : bench::model_presets()) names.push_back(shape.name);
  return join(names, ", ");
}

std::string device_names() {
  std::vector<std::string> names;
  for (const auto& device : bench::devices()) names.emplace_back(device.name);
  return join(names, ", ");
}

Status set_targets(const std::vector<std::string>& targets, bench::Lora* lora) {
  for (const std::string& target : targets) {
    if (target == "attn") {
      lora->attention = true;
    } else if (target == "mlp") {
      lora->feed_forward = true;
    } else {
      return Error{"not a target of LoRA", target, "attn, mlp, or both: attn,mlp"};
    }
  }
  return success();
}

// A number with a fraction, above zero.
void add_positive(FlagTable* table, const std::string& name, const std::string& value,
                  const std::string& help, std::optional<double>* target) {
  Flag flag;
  flag.names = {name};
  flag.value = value;
  flag.help = help;
  flag.set = [name, target](std::string_view text) -> Status {
    const std::optional<double> number = parse_double(text);
    if (!number || !std::isfinite(*number) || *number <= 0) {
      return Error{"not a number above 0: " + std::string(text), name, ""};
    }
    *target = *number;
    return success();
  };
  table->add(std::move(flag));
}

}  // namespace

int run_flops(const Words& words) {
  bool as_json = false;
  std::string model;
  std::string device;
  std::vector<std::string> targets;
  std::optional<long> dim, layers, heads, kv_heads, hidden, vocab, seq, batch, ranks, lora_rank,
      gpus, units;
  std::optional<double> tokens_per_s, peak;
  bool tied = false;
  FlagTable table("ezpz flops --model NAME [flags]",
                  "Tells what a Llama-style model costs to train: parameters, FLOP for each token, "
                  "bytes on each rank; with --tps also TFLOP/s and MFU of a measured speed. Only "
                  "matrix products count, attention as if it were dense, as published MFU figures "
                  "do.");
  table.section("The model");
  table.add_string({"--model"}, "NAME", "One of " + preset_names() + ".", &model);
  table.add_int({"--dim"}, "N", "Instead of the preset's; so with those below.", 1, &dim);
  table.add_int({"--n-layers"}, "N", "Blocks.", 1, &layers);
  table.add_int({"--n-heads"}, "N", "Query heads.", 1, &heads);
  table.add_int({"--n-kv-heads"}, "N", "Key and value heads.", 1, &kv_heads);
  table.add_int({"--hidden-dim"}, "N", "Width of the feed-forward net.", 1, &hidden);
  table.add_int({"--vocab-size"}, "N", "Rows of the embedding.", 1, &vocab);
  table.add_switch({"--tied"}, "The output matrix is the embedding.", &tied);
  table.section("The run");
  table.add_int({"--seq", "--seq-len"}, "N", "Tokens of a sequence. Default: the preset's.", 1,
                &seq);
  table.add_int({"--batch", "--batch-size"}, "N", "Sequences a rank and step. Default 1.", 1,
                &batch);
  table.add_int({"--ranks", "--world-size"}, "N",
                "Ranks that everything is sharded over. Default: --gpus, else 1.", 1, &ranks);
  table.add_int({"--lora-rank"}, "R", "Train adapters of this rank; 0: all weights.", 0,
                &lora_rank);
  table.add_list({"--lora-target"}, "attn,mlp", "Which matrices have adapters. Default attn.",
                 &targets);
  table.section("A measured speed");
  add_positive(&table, "--tps", "X", "Tokens a second, of all GPUs together.", &tokens_per_s);
  table.add_int({"--gpus"}, "N", "GPUs that it was measured on. Default 1.", 1, &gpus);
  table.add_string(
      {"--device"}, "NAME",
      "Whose peak MFU is a share of: " + device_names() + ", or what a driver calls one of them.",
      &device);
  table.add_int({"--compute-units"}, "N",
                "Of a PVC tile, as its driver tells them. Default 448 (Aurora).", 1, &units);
  add_positive(&table, "--peak-tflops", "X", "Of a device that is not in the list.", &peak);
  table.section("Output");
  table.add_switch({"--json"}, "For programs.", &as_json);
  table.epilogue(
      "Examples\n"
      "  ezpz flops --model agpt-2b --seq 2048\n"
      "  ezpz flops --model agpt-2b --lora-rank 16 --tps 90878.17 --gpus 8 --device A100\n"
      "  ezpz flops --model s --n-layers 24 --ranks 16 --json");
  if (FlagTable::wants_help_mixed(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse_mixed(words);
  if (!rest) return usage_error(rest.error().one_line());
  if (!rest->empty()) return usage_error("ezpz flops takes flags only, not " + rest->at(0));
  if (model.empty()) return usage_error("which model? --model takes " + preset_names());
  const bench::ModelShape* const preset = bench::find_model(model);
  if (preset == nullptr) {
    return usage_error("no model of that name: " + printable(model) + " (there are " +
                       preset_names() + ")");
  }
  Question question;
  question.shape = *preset;
  bench::ModelShape& shape = question.shape;
  shape.dim = dim.value_or(shape.dim);
  shape.layers = layers.value_or(shape.layers);
  shape.heads = heads.value_or(shape.heads);
  shape.kv_heads = kv_heads.value_or(shape.kv_heads);
  shape.hidden = hidden.value_or(shape.hidden);
  shape.vocab = vocab.value_or(shape.vocab);
  shape.seq = seq.value_or(shape.seq);
  shape.tied = shape.tied || tied;
  if (dim || layers || heads || kv_heads || hidden || vocab || tied) shape.name += " (changed)";
  const std::string trouble = bench::shape_trouble(shape);
  if (!trouble.empty()) return usage_error(trouble);

  question.lora.rank = lora_rank.value_or(0);
  if (question.lora.rank > shape.dim) return usage_error("--lora-rank is above the model's dim");
  if (!targets.empty() && !question.lora.on()) {
    return usage_error("--lora-target says nothing without --lora-rank");
  }
  if (const Status set = set_targets(targets, &question.lora); !set) {
    return usage_error(set.error().one_line());
  }
  if (question.lora.on() && targets.empty()) question.lora.attention = true;

  question.gpus = static_cast<int>(gpus.value_or(1));
  question.ranks = ranks.value_or(question.gpus);
  question.batch = batch.value_or(1);
  question.tokens_per_s = tokens_per_s;
  if (!device.empty() && peak) return usage_error("say --device or --peak-tflops, not both");
  if (!device.empty()) {
    const bench::Device* const found = bench::find_device(device);
    if (found == nullptr) {
      return usage_error("no device of that name: " + printable(device) + " (there are " +
                         device_names() + "; or say --peak-tflops)");
    }
    question.device = found->name;
    question.peak_tflops = bench::peak_tflops(*found, static_cast<int>(units.value_or(0)));
  } else {
    question.peak_tflops = peak;
  }
  const Json json = answer(question);
  write_all(1, as_json ? dump_pretty(json) + "\n" : tell(question, json));
  return 0;
}

}  // namespace ezpz::app
