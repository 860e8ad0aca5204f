// LoRA adapters in the PEFT layout: adapter_config.json and adapter_model.safetensors, where
//   layers.N.wq.lora_a  is  base_model.model.model.layers.N.self_attn.q_proj.lora_A.weight  [r, in]
//   layers.N.wq.lora_b  is  base_model.model.model.layers.N.self_attn.q_proj.lora_B.weight  [out,
//   r]
// and the adapted weight is W + scaling() * B A.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/weights/hf_config.h"
#include "train/weights/safetensors.h"

namespace ezpz::train {

struct PeftConfig {
  std::string base_model;  // base_model_name_or_path
  int64_t r = 8;
  double lora_alpha = 16;
  double lora_dropout = 0;
  bool use_rslora = false;
  std::vector<std::string> targets;  // the trainer's words: wq wk wv wo w1 w2 w3
  [[nodiscard]] double scaling() const;
};

// "attn", "mlp", "attn,mlp" to the matrices that get an adapter.
Result<std::vector<std::string>> lora_targets(std::string_view words);

// What cannot be computed the same way (DoRA, biases, ranks that differ) is an error.
Result<PeftConfig> parse_peft_config(std::string_view json, const std::string& where);
std::string format_peft_config(const PeftConfig&);

std::optional<std::string> peft_name(std::string_view trainer_name);
std::optional<std::string> peft_trainer_name(std::string_view peft_name);

// Every adapter tensor under the trainer's name, layer by layer, a before b.
std::vector<TensorSpec> adapter_tensors(const HfConfig&, const PeftConfig&, DType dtype);

struct PeftAdapter {
  PeftConfig config;
  SafetensorsFile file;
  // By the trainer's name; null when there is none.
  [[nodiscard]] const TensorInfo* find(std::string_view trainer_name) const;
};

// Checked against the model: all there, nothing more, in the right shapes.
Result<PeftAdapter> read_peft_adapter(const std::string& dir, const HfConfig& model);

// Opens dir/adapter_model.safetensors for the tensors of adapter_tensors(), in that order, and
// writes adapter_config.json. dir is made.
Result<SafetensorsWriter> write_peft_adapter(const std::string& dir, const HfConfig& model,
                                             const PeftConfig& config, DType dtype);

// Gives elements first .. first + count of a tensor of the model, by the trainer's name.
using ReadWeights = std::function<Status(const std::string& trainer_name, uint64_t first,
                                         uint64_t count, float* out)>;

// The model with the adapter added in, as a new folder out_dir. Works row block by row block.
Status merge_peft_adapter(const HfConfig& model, const ReadWeights& weights,
                          const std::string& adapter_dir, const std::string& out_dir, DType dtype);
// The same for a model in a folder.
Status merge_peft_adapter(const std::string& model_dir, const std::string& adapter_dir,
                          const std::string& out_dir, DType dtype);

}  // namespace ezpz::train
