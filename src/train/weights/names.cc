#include "train/weights/names.h"

#include <array>
#include <utility>

namespace ezpz::train {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 3> kOutside{{
    {"embed", "model.embed_tokens.weight"},
    {"norm", "model.norm.weight"},
    {"output", "lm_head.weight"},
}};

constexpr std::array<Pair, 9> kInLayer{{
    {"attn_norm", "input_layernorm.weight"},
    {"wq", "self_attn.q_proj.weight"},
    {"wk", "self_attn.k_proj.weight"},
    {"wv", "self_attn.v_proj.weight"},
    {"wo", "self_attn.o_proj.weight"},
    {"ffn_norm", "post_attention_layernorm.weight"},
    {"w1", "mlp.gate_proj.weight"},
    {"w2", "mlp.down_proj.weight"},
    {"w3", "mlp.up_proj.weight"},
}};

// "layers.12.wq" behind "layers." into "12" and "wq"; nothing for "layers.012.wq".
std::optional<Pair> split_layer(std::string_view name, std::string_view prefix) {
  if (name.substr(0, prefix.size()) != prefix) return std::nullopt;
  name.remove_prefix(prefix.size());
  const size_t dot = name.find('.');
  if (dot == 0 || dot > 9 || dot == std::string_view::npos) return std::nullopt;
  const std::string_view layer = name.substr(0, dot);
  if (layer.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  if (layer.size() > 1 && layer[0] == '0') return std::nullopt;
  return Pair{layer, name.substr(dot + 1)};
}

}  // namespace

std::optional<std::string> hf_name(std::string_view name) {
  for (const auto& [ours, theirs] : kOutside) {
    if (name == ours) return std::string(theirs);
  }
  const std::optional<Pair> layer = split_layer(name, "layers.");
  if (!layer) return std::nullopt;
  for (const auto& [ours, theirs] : kInLayer) {
    if (layer->second != ours) continue;
    return "model.layers." + std::string(layer->first) + "." + std::string(theirs);
  }
  return std::nullopt;
}

std::optional<std::string> trainer_name(std::string_view name) {
  for (const auto& [ours, theirs] : kOutside) {
    if (name == theirs) return std::string(ours);
  }
  const std::optional<Pair> layer = split_layer(name, "model.layers.");
  if (!layer) return std::nullopt;
  for (const auto& [ours, theirs] : kInLayer) {
    if (layer->second != theirs) continue;
    return "layers." + std::string(layer->first) + "." + std::string(ours);
  }
  return std::nullopt;
}

std::vector<TensorSpec> model_tensors(const HfConfig& config, DType dtype) {
  const int64_t dim = config.hidden_size;
  const int64_t hidden = config.intermediate_size;
  const int64_t q_rows = config.num_attention_heads * config.head_dim;
  const int64_t kv_rows = config.num_key_value_heads * config.head_dim;
  std::vector<TensorSpec> tensors{{"embed", dtype, {config.vocab_size, dim}}};
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    tensors.push_back({layer + "attn_norm", dtype, {dim}});
    tensors.push_back({layer + "wq", dtype, {q_rows, dim}});
    tensors.push_back({layer + "wk", dtype, {kv_rows, dim}});
    tensors.push_back({layer + "wv", dtype, {kv_rows, dim}});
    tensors.push_back({layer + "wo", dtype, {dim, q_rows}});
    tensors.push_back({layer + "ffn_norm", dtype, {dim}});
    tensors.push_back({layer + "w1", dtype, {hidden, dim}});
    tensors.push_back({layer + "w2", dtype, {dim, hidden}});
    tensors.push_back({layer + "w3", dtype, {hidden, dim}});
  }
  tensors.push_back({"norm", dtype, {dim}});
  if (!config.tie_word_embeddings) tensors.push_back({"output", dtype, {config.vocab_size, dim}});
  return tensors;
}

}  // namespace ezpz::train
