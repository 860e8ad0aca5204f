#include "train/weights/hf_config.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "train/weights/strict_json.h"

namespace ezpz::train {
namespace {

constexpr int64_t kMaxDimension = int64_t{1} << 31U;

// Reads members one by one and keeps the first complaint.
class Reader {
 public:
  Reader(const StrictJson& json, const std::string& where) : json_(json), where_(where) {}

  int64_t size(const char* key, std::optional<int64_t> otherwise = std::nullopt) {
    if (!has(key)) {
      if (!otherwise) complain(std::string("\"") + key + "\" is missing");
      return otherwise.value_or(0);
    }
    const std::optional<uint64_t> value = json_uint(json_, key);
    if (!value || *value == 0 || *value > kMaxDimension) {
      complain(std::string("\"") + key + "\" is not a number from 1 to " +
               std::to_string(kMaxDimension));
      return 0;
    }
    return static_cast<int64_t>(*value);
  }

  double positive(const char* key, std::optional<double> otherwise = std::nullopt) {
    if (!has(key) && otherwise) return *otherwise;
    const std::optional<double> value = json_number(json_, key);
    if (!value || !std::isfinite(*value) || *value <= 0) {
      complain(std::string("\"") + key + "\" is not a positive number");
      return 1;
    }
    return *value;
  }

  bool flag(const char* key) {
    if (!has(key)) return false;
    const std::optional<bool> value = json_bool(json_, key);
    if (!value) complain(std::string("\"") + key + "\" is neither true nor false");
    return value.value_or(false);
  }

  // Missing or null is as good as not there.
  [[nodiscard]] bool has(const char* key) const {
    const auto found = json_.find(key);
    return found != json_.end() && !found->is_null();
  }

  void complain(const std::string& what, const std::string& hint = "") {
    if (!error_) error_ = Error{what, where_, hint};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const StrictJson& json_;
  std::string where_;
  std::optional<Error> error_;
};

// The stretching's own object: "rope_scaling", or "rope_parameters" in newer files.
void read_scaling(const StrictJson& json, const std::string& where, HfConfig* config,
                  Reader* outer) {
  if (!json.is_object()) return outer->complain("the rope scaling is not an object");
  Reader reader(json, where);
  config->rope_theta = reader.positive("rope_theta", config->rope_theta);
  const std::optional<std::string> type =
      json_text(json, reader.has("rope_type") ? "rope_type" : "type");
  if (!type || *type == "default") {
    if (!type && reader.has("factor")) outer->complain("the rope scaling names no type");
  } else if (*type == "llama3") {
    RopeScaling scaling;
    scaling.factor = reader.positive("factor");
    scaling.low_freq_factor = reader.positive("low_freq_factor");
    scaling.high_freq_factor = reader.positive("high_freq_factor");
    scaling.original_max_position_embeddings = reader.positive("original_max_position_embeddings");
    if (scaling.high_freq_factor <= scaling.low_freq_factor) {
      reader.complain("high_freq_factor must be larger than low_freq_factor");
    }
    config->rope_scaling = scaling;
  } else {
    outer->complain("rope scaling of type \"" + *type + "\" is not known",
                    "\"llama3\" and \"default\" are");
  }
  if (reader.error()) outer->complain(reader.error()->what);
}

void read_token_ids(const StrictJson& json, HfConfig* config) {
  if (const auto bos = json_uint(json, "bos_token_id")) {
    config->bos_token_id = static_cast<int64_t>(*bos);
  }
  const auto eos = json.find("eos_token_id");
  if (eos == json.end()) return;
  if (eos->is_number_unsigned()) config->eos_token_ids = {eos->get<int64_t>()};
  if (!eos->is_array()) return;
  for (const StrictJson& id : *eos) {
    if (id.is_number_unsigned()) config->eos_token_ids.push_back(id.get<int64_t>());
  }
}

}  // namespace

Result<HfConfig> parse_hf_config(std::string_view text, const std::string& where) {
  Result<StrictJson> parsed = parse_strict_json(text, where);
  if (!parsed) return parsed.error();
  const StrictJson& json = *parsed;
  if (!json.is_object()) return Error{"not a model's configuration", where, ""};
  const std::string type = json_text(json, "model_type").value_or("");
  if (type != "llama") {
    return Error{"a model of type \"" + type + "\"", where, "only \"llama\" can be loaded"};
  }
  Reader reader(json, where);
  HfConfig config;
  config.vocab_size = reader.size("vocab_size");
  config.hidden_size = reader.size("hidden_size");
  config.intermediate_size = reader.size("intermediate_size");
  config.num_hidden_layers = reader.size("num_hidden_layers");
  config.num_attention_heads = reader.size("num_attention_heads");
  config.num_key_value_heads = reader.size("num_key_value_heads", config.num_attention_heads);
  config.max_position_embeddings = reader.size("max_position_embeddings", 2048);
  config.rms_norm_eps = reader.positive("rms_norm_eps", 1e-6);
  config.rope_theta = reader.positive("rope_theta", 10000);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings");
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (reader.has(key)) read_scaling(json[key], where, &config, &reader);
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (reader.flag(key))
      reader.complain(std::string("\"") + key + "\" is true; biases are not known");
  }
  if (const std::string act = json_text(json, "hidden_act").value_or("silu"); act != "silu") {
    reader.complain("an activation \"" + act + "\"", "only \"silu\" is known");
  }
  if (json.contains("quantization_config")) {
    reader.complain("the weights are quantized", "take the checkpoint they were made from");
  }
  config.torch_dtype =
      json_text(json, json.contains("torch_dtype") ? "torch_dtype" : "dtype").value_or("float32");
  read_token_ids(json, &config);
  if (reader.error()) return *reader.error();
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return Error{"num_key_value_heads does not divide num_attention_heads", where, ""};
  }
  if (!reader.has("head_dim") && config.hidden_size % config.num_attention_heads != 0) {
    return Error{"num_attention_heads does not divide hidden_size", where, ""};
  }
  config.head_dim = reader.size("head_dim", config.hidden_size / config.num_attention_heads);
  if (!reader.error() && config.head_dim % 2 != 0) reader.complain("head_dim is odd");
  if (reader.error()) return *reader.error();
  return config;
}

Result<HfConfig> read_hf_config(const std::string& model_dir) {
  const std::string path = model_dir + "/config.json";
  Result<std::string> text = read_file(path, 1U << 20U);
  if (!text) return text.error();
  return parse_hf_config(*text, path);
}

std::string format_hf_config(const HfConfig& config) {
  Json json = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.num_hidden_layers},
      {"num_attention_heads", config.num_attention_heads},
      {"num_key_value_heads", config.num_key_value_heads},
      {"head_dim", config.head_dim},
      {"max_position_embeddings", config.max_position_embeddings},
      {"rms_norm_eps", config.rms_norm_eps},
      {"rope_theta", config.rope_theta},
      {"rope_scaling", nullptr},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"torch_dtype", config.torch_dtype},
  };
  if (config.rope_scaling) {
    json["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", config.rope_scaling->factor},
        {"low_freq_factor", config.rope_scaling->low_freq_factor},
        {"high_freq_factor", config.rope_scaling->high_freq_factor},
        {"original_max_position_embeddings",
         static_cast<int64_t>(config.rope_scaling->original_max_position_embeddings)},
    };
  }
  if (config.bos_token_id) json["bos_token_id"] = *config.bos_token_id;
  if (config.eos_token_ids.size() == 1) json["eos_token_id"] = config.eos_token_ids[0];
  if (config.eos_token_ids.size() > 1) json["eos_token_id"] = config.eos_token_ids;
  return dump_pretty(json) + "\n";
}

std::vector<double> rope_frequencies(const HfConfig& config) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < config.head_dim / 2; ++i) {
    double frequency = std::pow(
        config.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim));
    if (config.rope_scaling) {
      // Slow pairs (few turns within the context of the first training) are slowed by the factor,
      // fast ones kept, and those in between are a mix.
      const RopeScaling& scaling = *config.rope_scaling;
      const double turns = scaling.original_max_position_embeddings * frequency / (2 * M_PI);
      const double kept =
          (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      const double share = std::fmin(1.0, std::fmax(0.0, kept));
      frequency = share * frequency + (1 - share) * frequency / scaling.factor;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace ezpz::train
