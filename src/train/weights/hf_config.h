// config.json of a Hugging Face Llama checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::train {

// Llama 3's stretching of the rotary frequencies ("rope_type": "llama3").
struct RopeScaling {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_max_position_embeddings = 8192;
};

struct HfConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;  // hidden_size / num_attention_heads unless the file says otherwise
  int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  std::optional<RopeScaling> rope_scaling;
  bool tie_word_embeddings = false;
  std::string torch_dtype = "float32";  // of the stored weights
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;
};

// What the trainer cannot compute the same way (another architecture, biases, another activation,
// another stretching) is an error, never ignored.
Result<HfConfig> parse_hf_config(std::string_view json, const std::string& where);
Result<HfConfig> read_hf_config(const std::string& model_dir);
std::string format_hf_config(const HfConfig&);

// The rotary frequency of each pair of a head's dimensions, head_dim / 2 of them, stretched if the
// configuration says so. The pair (i, i + head_dim / 2) turns by position * frequency[i].
std::vector<double> rope_frequencies(const HfConfig&);

}  // namespace ezpz::train
