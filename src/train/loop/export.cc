#include "train/loop/export.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "train/checkpoint/load.h"
#include "train/model/layout.h"
#include "train/weights/hf_model.h"
#include "train/weights/names.h"
#include "train/weights/peft.h"

namespace ezpz::train {
namespace {

constexpr uint64_t kElementsAtOnce = 4U << 20U;

// Every tensor in order, a piece at a time.
template <class Writer>
Status copy_tensors(const std::vector<TensorSpec>& tensors,
                    const std::function<std::string(const std::string&)>& stored_name,
                    const ReadWeights& read, Writer* writer) {
  std::vector<float> piece;
  for (const TensorSpec& tensor : tensors) {
    uint64_t elements = 1;
    for (const int64_t n : tensor.shape) elements *= static_cast<uint64_t>(n);
    for (uint64_t at = 0; at < elements; at += kElementsAtOnce) {
      const uint64_t n = std::min(kElementsAtOnce, elements - at);
      piece.resize(n);
      const Status got = read(stored_name(tensor.name), at, n, piece.data());
      if (!got) return got;
      const Status put = writer->append(piece.data(), n);
      if (!put) return put;
    }
  }
  return writer->finish();
}

ReadWeights from_checkpoint(CheckpointReader* reader) {
  return [reader](const std::string& name, uint64_t first, uint64_t count, float* out) {
    Part part;
    part.tensor = name;
    part.first = first;
    part.count = count;
    return reader->read(part, out);
  };
}

std::string hf_stored_name(const std::string& name) { return hf_name(name).value_or(name); }

// The values that training from a seed begins with.
ReadWeights from_seed(const std::vector<UnitLayout>& units, uint64_t seed) {
  return [&units, seed](const std::string& name, uint64_t first, uint64_t count,
                        float* out) -> Status {
    const std::string stored = hf_stored_name(name);
    for (const UnitLayout& unit : units) {
      for (const Parameter& p : unit.parameters) {
        if (p.name != stored) continue;
        const int64_t begin = p.offset + static_cast<int64_t>(first);
        initialize(out, unit, begin, begin + static_cast<int64_t>(count), seed);
        return success();
      }
    }
    return Error{"no such parameter: " + name, "the model", ""};
  };
}

}  // namespace

Result<HfConfig> hf_config_of(const TrainOptions& options) {
  if (!options.base_dir.empty()) return read_hf_config(options.base_dir);
  const bench::ModelShape& s = options.shape;
  HfConfig config;
  config.vocab_size = s.vocab;
  config.hidden_size = s.dim;
  config.intermediate_size = s.hidden;
  config.num_hidden_layers = s.layers;
  config.num_attention_heads = s.heads;
  config.num_key_value_heads = s.kv_heads;
  config.head_dim = s.head_dim();
  config.max_position_embeddings = std::max(options.seq, s.seq);
  config.rms_norm_eps = static_cast<double>(options.norm_eps);
  config.rope_theta = s.rope_theta;
  config.tie_word_embeddings = s.tied;
  return config;
}

Status export_adapter(const TrainOptions& options, const std::string& checkpoint,
                      const std::string& dir) {
  Result<CheckpointReader> reader = CheckpointReader::open(checkpoint);
  if (!reader) return reader.error();
  const Result<HfConfig> model = hf_config_of(options);
  if (!model) return model.error();
  PeftConfig config;
  config.base_model = options.base_dir;
  config.r = options.lora.rank;
  config.lora_alpha = options.lora_alpha;
  config.lora_dropout = options.lora_dropout;
  for (const auto& [on, words] :
       {std::pair{options.lora.attention, "attn"}, {options.lora.feed_forward, "mlp"}}) {
    if (!on) continue;
    const Result<std::vector<std::string>> targets = lora_targets(words);
    if (!targets) return targets.error();
    config.targets.insert(config.targets.end(), targets->begin(), targets->end());
  }
  Result<SafetensorsWriter> writer = write_peft_adapter(dir, *model, config, DType::f32);
  if (!writer) return writer.error();
  const auto stored = [](const std::string& name) { return peft_name(name).value_or(name); };
  return copy_tensors(adapter_tensors(*model, config, DType::f32), stored,
                      from_checkpoint(&*reader), &*writer);
}

Status export_model(const TrainOptions& options, const std::string& checkpoint,
                    const std::string& dir) {
  const Result<HfConfig> config = hf_config_of(options);
  if (!config) return config.error();
  if (!options.lora.on()) {
    Result<CheckpointReader> reader = CheckpointReader::open(checkpoint);
    if (!reader) return reader.error();
    Result<HfModelWriter> writer = HfModelWriter::open(dir, *config, DType::f32);
    if (!writer) return writer.error();
    return copy_tensors(model_tensors(*config, DType::f32), hf_stored_name,
                        from_checkpoint(&*reader), &*writer);
  }
  const std::string adapter = options.outdir + "/adapter";
  if (!options.base_dir.empty()) {
    return merge_peft_adapter(options.base_dir, adapter, dir, DType::f32);
  }
  const std::vector<UnitLayout> units = unit_layouts(options.shape);
  return merge_peft_adapter(*config, from_seed(units, options.seed), adapter, dir, DType::f32);
}

}  // namespace ezpz::train
