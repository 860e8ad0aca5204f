#include "train/weights/peft.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "train/weights/hf_model.h"
#include "train/weights/names.h"
#include "train/weights/strict_json.h"

namespace ezpz::train {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kWeight = ".weight";
constexpr int64_t kMaxRank = 1 << 16;
constexpr uint64_t kRowsAtOnce = 256;

bool strip_end(std::string_view* text, std::string_view end) {
  if (text->size() < end.size() || text->substr(text->size() - end.size()) != end) return false;
  text->remove_suffix(end.size());
  return true;
}

// "wq" for "q_proj".
std::optional<std::string> target_of(const std::string& module) {
  for (const char* part : {"self_attn.", "mlp."}) {
    const auto name = trainer_name("model.layers.0." + (part + module) + ".weight");
    if (name) return name->substr(name->rfind('.') + 1);
  }
  return std::nullopt;
}

// "q_proj" for "wq".
std::string module_of(const std::string& target) {
  const std::vector<std::string> parts = split(hf_name("layers.0." + target).value_or(""), '.');
  return parts.size() < 2 ? target : parts[parts.size() - 2];
}

}  // namespace

double PeftConfig::scaling() const {
  return lora_alpha / (use_rslora ? std::sqrt(static_cast<double>(r)) : static_cast<double>(r));
}

Result<std::vector<std::string>> lora_targets(std::string_view words) {
  std::vector<std::string> targets;
  bool attn = false;
  bool mlp = false;
  for (const std::string& word : split(words, ',')) {
    if (word == "attn") {
      attn = true;
    } else if (word == "mlp") {
      mlp = true;
    } else {
      return Error{"not a LoRA target: \"" + word + "\"", "--lora-target",
                   "give attn, mlp, or attn,mlp"};
    }
  }
  if (attn) targets = {"wq", "wk", "wv", "wo"};
  if (mlp) targets.insert(targets.end(), {"w1", "w2", "w3"});
  return targets;
}

Result<PeftConfig> parse_peft_config(std::string_view text, const std::string& where) {
  Result<StrictJson> parsed = parse_strict_json(text, where);
  if (!parsed) return parsed.error();
  const StrictJson& json = *parsed;
  const auto refuse = [&](const std::string& what) { return Error{what, where, ""}; };
  if (json_text(json, "peft_type").value_or("") != "LORA") return refuse("not a LoRA adapter");
  PeftConfig config;
  config.base_model = json_text(json, "base_model_name_or_path").value_or("");
  const std::optional<uint64_t> r = json_uint(json, "r");
  if (!r || *r == 0 || *r > kMaxRank) return refuse("\"r\" is not a rank");
  config.r = static_cast<int64_t>(*r);
  const std::optional<double> alpha = json_number(json, "lora_alpha");
  if (!alpha || !std::isfinite(*alpha)) return refuse("\"lora_alpha\" is not a number");
  config.lora_alpha = *alpha;
  config.lora_dropout = json_number(json, "lora_dropout").value_or(0);
  if (!(config.lora_dropout >= 0 && config.lora_dropout < 1)) {
    return refuse("\"lora_dropout\" is not from 0 to 1");
  }
  config.use_rslora = json_bool(json, "use_rslora").value_or(false);
  if (json_bool(json, "use_dora").value_or(false)) return refuse("DoRA is not known");
  if (json_bool(json, "fan_in_fan_out").value_or(false)) return refuse("transposed weights");
  if (json_text(json, "bias").value_or("none") != "none") return refuse("biases are not known");
  for (const char* key :
       {"rank_pattern", "alpha_pattern", "modules_to_save", "layers_to_transform"}) {
    const auto found = json.find(key);
    if (found != json.end() && !found->empty()) {
      return refuse("\"" + std::string(key) + "\" is not known");
    }
  }
  const auto modules = json.find("target_modules");
  if (modules == json.end()) return refuse("\"target_modules\" is missing");
  if (modules->is_string() && modules->get<std::string>() == "all-linear") {
    config.targets = {"wq", "wk", "wv", "wo", "w1", "w2", "w3"};
    return config;
  }
  if (!modules->is_array()) return refuse("\"target_modules\" is not a list of modules");
  for (const StrictJson& module : *modules) {
    const auto target =
        module.is_string() ? target_of(module.get<std::string>()) : std::optional<std::string>();
    if (!target)
      return refuse("an adapter for a module that is not known: " +
                    module.dump(-1, ' ', true, StrictJson::error_handler_t::replace));
    config.targets.push_back(*target);
  }
  std::sort(config.targets.begin(), config.targets.end());
  config.targets.erase(std::unique(config.targets.begin(), config.targets.end()),
                       config.targets.end());
  return config;
}

std::string format_peft_config(const PeftConfig& config) {
  Json modules = Json::array();
  for (const std::string& target : config.targets) modules.push_back(module_of(target));
  return dump_pretty(Json{{"peft_type", "LORA"},
                          {"task_type", "CAUSAL_LM"},
                          {"base_model_name_or_path", config.base_model},
                          {"r", config.r},
                          {"lora_alpha", config.lora_alpha},
                          {"lora_dropout", config.lora_dropout},
                          {"target_modules", modules},
                          {"bias", "none"},
                          {"fan_in_fan_out", false},
                          {"use_rslora", config.use_rslora},
                          {"inference_mode", true}}) +
         "\n";
}

std::optional<std::string> peft_name(std::string_view name) {
  const char* part = nullptr;
  if (strip_end(&name, ".lora_a")) {
    part = ".lora_A.weight";
  } else if (strip_end(&name, ".lora_b")) {
    part = ".lora_B.weight";
  } else {
    return std::nullopt;
  }
  const std::optional<std::string> weight = hf_name(name);
  if (!weight) return std::nullopt;
  std::string_view module = *weight;
  strip_end(&module, kWeight);
  return std::string(kPrefix) + std::string(module) + part;
}

std::optional<std::string> peft_trainer_name(std::string_view name) {
  if (name.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const char* part = nullptr;
  if (strip_end(&name, ".lora_A.weight")) {
    part = ".lora_a";
  } else if (strip_end(&name, ".lora_B.weight")) {
    part = ".lora_b";
  } else {
    return std::nullopt;
  }
  const std::optional<std::string> weight = trainer_name(std::string(name) + ".weight");
  if (!weight) return std::nullopt;
  return *weight + part;
}

std::vector<TensorSpec> adapter_tensors(const HfConfig& model, const PeftConfig& config,
                                        DType dtype) {
  std::vector<TensorSpec> tensors;
  for (const TensorSpec& base : model_tensors(model, dtype)) {
    const std::string target = base.name.substr(base.name.rfind('.') + 1);
    if (std::find(config.targets.begin(), config.targets.end(), target) == config.targets.end()) {
      continue;
    }
    tensors.push_back({base.name + ".lora_a", dtype, {config.r, base.shape[1]}});
    tensors.push_back({base.name + ".lora_b", dtype, {base.shape[0], config.r}});
  }
  return tensors;
}

const TensorInfo* PeftAdapter::find(std::string_view name) const {
  const std::optional<std::string> theirs = peft_name(name);
  return theirs ? file.find(*theirs) : nullptr;
}

Result<PeftAdapter> read_peft_adapter(const std::string& dir, const HfConfig& model) {
  const std::string config_path = dir + "/adapter_config.json";
  Result<std::string> text = read_file(config_path, 1U << 20U);
  if (!text) return text.error();
  Result<PeftConfig> config = parse_peft_config(*text, config_path);
  if (!config) return config.error();
  Result<SafetensorsFile> file = SafetensorsFile::open(dir + "/adapter_model.safetensors");
  if (!file) return file.error();
  PeftAdapter adapter{*std::move(config), *std::move(file)};
  const std::vector<TensorSpec> wanted = adapter_tensors(model, adapter.config, DType::f32);
  for (const TensorSpec& tensor : wanted) {
    const TensorInfo* found = adapter.find(tensor.name);
    if (found == nullptr) {
      return Error{"the adapter has no \"" + peft_name(tensor.name).value_or(tensor.name) + "\"",
                   adapter.file.path(), "is it of this model?"};
    }
    if (found->shape != tensor.shape) {
      return Error{"\"" + found->name + "\" is " + shape_text(found->shape) + " and not " +
                       shape_text(tensor.shape),
                   adapter.file.path(), "is it of this model?"};
    }
  }
  if (wanted.size() != adapter.file.tensors().size()) {
    return Error{"the adapter has " + std::to_string(adapter.file.tensors().size()) +
                     " tensors, its configuration makes it " + std::to_string(wanted.size()),
                 adapter.file.path(), "is it of this model?"};
  }
  return adapter;
}

Result<SafetensorsWriter> write_peft_adapter(const std::string& dir, const HfConfig& model,
                                             const PeftConfig& config, DType dtype) {
  if (Status made = make_directories(dir); !made) return made.error();
  Status written = write_file_atomically(dir + "/adapter_config.json", format_peft_config(config));
  if (!written) return written.error();
  std::vector<TensorSpec> tensors = adapter_tensors(model, config, dtype);
  for (TensorSpec& tensor : tensors) tensor.name = peft_name(tensor.name).value_or(tensor.name);
  return SafetensorsWriter::open(dir + "/adapter_model.safetensors", std::move(tensors));
}

Status merge_peft_adapter(const HfConfig& model, const ReadWeights& weights,
                          const std::string& adapter_dir, const std::string& out_dir, DType dtype) {
  Result<PeftAdapter> adapter = read_peft_adapter(adapter_dir, model);
  if (!adapter) return adapter.error();
  Result<HfModelWriter> writer = HfModelWriter::open(out_dir, model, dtype);
  if (!writer) return writer.error();
  const auto r = static_cast<uint64_t>(adapter->config.r);
  const auto scaling = static_cast<float>(adapter->config.scaling());
  std::vector<float> block;
  std::vector<float> a;
  std::vector<float> b;
  for (const TensorSpec& tensor : model_tensors(model, dtype)) {
    const auto rows = static_cast<uint64_t>(tensor.shape[0]);
    const uint64_t columns = tensor.shape.size() > 1 ? static_cast<uint64_t>(tensor.shape[1]) : 1;
    const TensorInfo* a_info = adapter->find(tensor.name + ".lora_a");
    const TensorInfo* b_info = adapter->find(tensor.name + ".lora_b");
    if (a_info != nullptr) {
      a.resize(r * columns);
      if (Status read = adapter->file.read_rows(*a_info, 0, r, a.data()); !read) return read;
    }
    for (uint64_t row = 0; row < rows; row += kRowsAtOnce) {
      const uint64_t n = std::min(kRowsAtOnce, rows - row);
      block.resize(n * columns);
      Status read = weights(tensor.name, row * columns, n * columns, block.data());
      if (!read) return read;
      if (a_info != nullptr && b_info != nullptr) {
        b.resize(n * r);
        if (Status rows_read = adapter->file.read_rows(*b_info, row, n, b.data()); !rows_read) {
          return rows_read;
        }
        for (uint64_t i = 0; i < n; ++i) {
          for (uint64_t k = 0; k < r; ++k) {
            const float factor = scaling * b[i * r + k];
            for (uint64_t j = 0; j < columns; ++j)
              block[i * columns + j] += factor * a[k * columns + j];
          }
        }
      }
      if (Status appended = writer->append(block.data(), n * columns); !appended) return appended;
    }
  }
  return writer->finish();
}

Status merge_peft_adapter(const std::string& model_dir, const std::string& adapter_dir,
                          const std::string& out_dir, DType dtype) {
  const Result<HfModel> model = HfModel::open(model_dir);
  if (!model) return model.error();
  const auto weights = [&model](const std::string& name, uint64_t first, uint64_t count,
                                float* out) {
    return model->read_elements(name, first, count, out);
  };
  return merge_peft_adapter(model->config(), weights, adapter_dir, out_dir, dtype);
}

}  // namespace ezpz::train
