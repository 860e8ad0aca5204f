// The shape of a Llama-style model and what follows from it: matrices, parameters. Readable as
// C++17.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ezpz::bench {

// Attention without biases, grouped queries, a gated feed-forward net (three matrices).
struct ModelShape {
  std::string name;
  int64_t dim = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t hidden = 0;  // of the feed-forward net
  int64_t vocab = 0;
  int64_t seq = 2048;  // what it is usually trained with
  double rope_theta = 10000;
  bool tied = false;  // the output matrix is the embedding

  [[nodiscard]] int64_t head_dim() const { return dim / heads; }
  [[nodiscard]] int64_t kv_dim() const { return head_dim() * kv_heads; }
};

// What is wrong with a shape, in a sentence; empty: nothing.
std::string shape_trouble(const ModelShape&);

// The width of the feed-forward net where none is given: two thirds of 4 * dim, rounded up.
int64_t default_hidden(int64_t dim, int64_t multiple_of);

const std::vector<ModelShape>& model_presets();
// By name, any case; "agpt_2b" and "agpt-2b" are the same. Null: there is none of that name.
const ModelShape* find_model(std::string_view name);

// The matrices of a block that LoRA can adapt.
enum class Module { attention, feed_forward };
struct Matrix {
  std::string_view name;  // "wq"
  Module module = Module::attention;
  int64_t in = 0;
  int64_t out = 0;
  [[nodiscard]] int64_t elements() const { return in * out; }
};
std::vector<Matrix> block_matrices(const ModelShape&);

int64_t block_elements(const ModelShape&);  // of its matrices, without norms
int64_t parameter_count(const ModelShape&);

}  // namespace ezpz::bench
