#include "bench/flops.h"

namespace ezpz::bench {
namespace {

// Those of a block whose input is the block's own.
bool reads_block_input(const Matrix& matrix) {
  return matrix.name == "wq" || matrix.name == "wk" || matrix.name == "wv";
}

int64_t adapter_elements(const Matrix& matrix, const Lora& lora) {
  return lora.on() && lora.adapts(matrix.module) ? lora.rank * (matrix.in + matrix.out) : 0;
}

}  // namespace

TokenCost token_cost(const ModelShape& shape, int64_t seq, const Lora& lora) {
  const std::vector<Matrix> matrices = block_matrices(shape);
  const int64_t output = shape.vocab * shape.dim;
  // Queries times keys, and weights times values: each 2 * seq * dim a token.
  const int64_t attention = shape.layers * 4 * seq * shape.dim;
  TokenCost cost;
  cost.forward = attention + 2 * output;
  // The gradients of both factors; a frozen output matrix needs only its input's.
  cost.backward = 2 * attention + (lora.on() ? 2 : 4) * output;
  for (const Matrix& matrix : matrices) {
    const int64_t adapter = adapter_elements(matrix, lora);
    cost.forward += shape.layers * 2 * (matrix.elements() + adapter);
    cost.backward += shape.layers * ((lora.on() ? 2 : 4) * matrix.elements() + 4 * adapter);
    if (lora.on() && reads_block_input(matrix)) {
      const int64_t a = adapter > 0 ? lora.rank * matrix.in : 0;
      cost.backward -= 2 * (matrix.elements() + a);
    }
  }
  return cost;
}

int64_t trainable_count(const ModelShape& shape, const Lora& lora) {
  if (!lora.on()) return parameter_count(shape);
  int64_t block = 0;
  for (const Matrix& matrix : block_matrices(shape)) block += adapter_elements(matrix, lora);
  return shape.layers * block;
}

int64_t lora_payload(const ModelShape& shape, const Lora& lora, int64_t ranks) {
  const int64_t padded = (lora.rank + ranks - 1) / ranks * ranks;
  int64_t elements = 0;
  for (const Matrix& matrix : block_matrices(shape)) {
    if (lora.adapts(matrix.module)) elements += padded * matrix.in + lora.rank * matrix.out;
  }
  return elements;
}

Speed speed_of(const TokenCost& cost, double tokens_per_s, int gpus, double peak_tflops) {
  Speed speed;
  speed.tflops_per_gpu = static_cast<double>(cost.total()) * tokens_per_s / gpus / 1e12;
  speed.mfu_percent = 100 * speed.tflops_per_gpu / peak_tflops;
  return speed;
}

RankBytes rank_bytes(const ModelShape& shape, const Lora& lora, int64_t ranks) {
  constexpr double kBytes = 4;
  const auto trained = static_cast<double>(trainable_count(shape, lora));
  const auto all = static_cast<double>(parameter_count(shape)) + (lora.on() ? trained : 0);
  const auto shares = static_cast<double>(ranks);
  return {kBytes * all / shares, kBytes * trained / shares, 2 * kBytes * trained / shares};
}

}  // namespace ezpz::bench
