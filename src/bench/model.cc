#include "bench/model.h"

#include <algorithm>

#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr int64_t kLadderVocab = 32000;

ModelShape rung(std::string name, int64_t dim, int64_t layers, int64_t heads, int64_t kv_heads,
                int64_t multiple_of = 256) {
  ModelShape shape;
  shape.name = std::move(name);
  shape.dim = dim;
  shape.layers = layers;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.hidden = default_hidden(dim, multiple_of);
  shape.vocab = kLadderVocab;
  return shape;
}

std::vector<ModelShape> make_presets() {
  std::vector<ModelShape> presets{
      rung("debug", 128, 4, 4, 2, 128), rung("s", 768, 12, 12, 4),   rung("m", 1024, 16, 16, 4),
      rung("l", 1536, 16, 16, 4),       rung("xl", 2048, 24, 32, 8), rung("xxl", 4096, 32, 32, 8),
      rung("xxxl", 5120, 40, 40, 8),
  };
  presets[0].seq = 256;
  ModelShape agpt_2b;
  agpt_2b.name = "agpt-2b";
  agpt_2b.dim = 2048;
  agpt_2b.layers = 12;
  agpt_2b.heads = 16;
  agpt_2b.kv_heads = 4;
  agpt_2b.hidden = 11008;
  agpt_2b.vocab = 256128;
  agpt_2b.rope_theta = 50000;
  presets.push_back(agpt_2b);
  ModelShape agpt_20b = agpt_2b;
  agpt_20b.name = "agpt-20b";
  agpt_20b.dim = 5120;
  agpt_20b.layers = 64;
  agpt_20b.heads = 40;
  agpt_20b.kv_heads = 8;
  agpt_20b.hidden = 14336;
  agpt_20b.rope_theta = 500000;
  presets.push_back(agpt_20b);
  return presets;
}

std::string plain(std::string_view name) {
  std::string text = lower(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

}  // namespace

int64_t default_hidden(int64_t dim, int64_t multiple_of) {
  const int64_t two_thirds = 2 * (4 * dim) / 3;
  return multiple_of * ((two_thirds + multiple_of - 1) / multiple_of);
}

std::string shape_trouble(const ModelShape& shape) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"dim", shape.dim},           {"n-layers", shape.layers},
      {"n-heads", shape.heads},     {"n-kv-heads", shape.kv_heads},
      {"hidden-dim", shape.hidden}, {"vocab-size", shape.vocab},
      {"seq-len", shape.seq},
  };
  for (const auto& [name, size] : sizes) {
    if (size < 1) return std::string(name) + " must be at least 1";
    // Everything is multiplied with everything else, and must stay exact.
    if (size > 10'000'000) return std::string(name) + " is beyond any model (10,000,000)";
  }
  if (shape.dim % shape.heads != 0) return "n-heads must divide dim";
  if (shape.heads % shape.kv_heads != 0) return "n-kv-heads must divide n-heads";
  return {};
}

const std::vector<ModelShape>& model_presets() {
  static const std::vector<ModelShape> presets = make_presets();
  return presets;
}

const ModelShape* find_model(std::string_view name) {
  for (const ModelShape& shape : model_presets()) {
    if (shape.name == plain(name)) return &shape;
  }
  return nullptr;
}

std::vector<Matrix> block_matrices(const ModelShape& shape) {
  return {
      {"wq", Module::attention, shape.dim, shape.dim},
      {"wk", Module::attention, shape.dim, shape.kv_dim()},
      {"wv", Module::attention, shape.dim, shape.kv_dim()},
      {"wo", Module::attention, shape.dim, shape.dim},
      {"w1", Module::feed_forward, shape.dim, shape.hidden},
      {"w3", Module::feed_forward, shape.dim, shape.hidden},
      {"w2", Module::feed_forward, shape.hidden, shape.dim},
  };
}

int64_t block_elements(const ModelShape& shape) {
  int64_t elements = 0;
  for (const Matrix& matrix : block_matrices(shape)) elements += matrix.elements();
  return elements;
}

int64_t parameter_count(const ModelShape& shape) {
  const int64_t block = block_elements(shape) + 2 * shape.dim;
  const int64_t tables = (shape.tied ? 1 : 2) * shape.vocab * shape.dim;
  return shape.layers * block + shape.dim + tables;
}

}  // namespace ezpz::bench
