// Which parameters a model has and where each lies. Parameters are kept in units: the embedding,
// each block, the head. A unit is one flat array, so that it is gathered, reduced and updated as a
// whole; matrices that read the same input stand together and are one product. Readable as C++17.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/flops.h"
#include "bench/model.h"

namespace ezpz::train {

// How tensor parallelism divides a parameter.
enum class Split { whole, by_rows, by_columns };

enum class Initial { ones, zeros, normal };

struct Parameter {
  std::string name;  // as in Hugging Face's checkpoints
  // What this rank holds of it; a vector has one column.
  int64_t rows = 0;
  int64_t columns = 1;
  int64_t offset = 0;  // in its unit
  Split split = Split::whole;
  // Where this rank's part begins in the whole, and how wide the whole is.
  int64_t first_row = 0;
  int64_t first_column = 0;
  int64_t whole_columns = 1;
  int64_t whole_rows = 0;
  Initial initial = Initial::ones;
  float deviation = 0;  // of normal initial values
  bool decay = false;   // weight decay: of matrices only
  // Whole on every tensor parallel rank, while each computes only a part of its gradient's sum.
  bool partial_gradient = false;
  [[nodiscard]] int64_t elements() const { return rows * columns; }
};

struct UnitLayout {
  std::string name;
  std::vector<Parameter> parameters;
  int64_t elements = 0;
  int slot = 0;  // units of one slot are never held at once: they may share memory
  [[nodiscard]] const Parameter& find(const std::string& name) const;  // aborts when there is none
};

struct TensorParallel {
  int rank = 0;
  int size = 1;
};

// The embedding, the blocks in order, the head. A tied model's head has only its norm. The shape
// must be sound, and the tensor parallel size divide heads, kv heads, hidden and vocabulary.
std::vector<UnitLayout> unit_layouts(const bench::ModelShape&, TensorParallel = {});

// Low-rank adapters (LoRA, Hu et al. 2021): a unit a block, each adapted matrix W having A (rank x
// in) and B (out x rank, zero at first); W acts as W + scale * B A. Those that read the same input
// stand together, as do their W: their A are one matrix. Names are PEFT's.
std::vector<UnitLayout> adapter_layouts(const bench::ModelShape&, const bench::Lora&,
                                        TensorParallel = {});

// Writes the initial values of elements begin to end of a unit: the same whatever part is asked
// for.
void initialize(float* out, const UnitLayout&, int64_t begin, int64_t end, uint64_t seed);

}  // namespace ezpz::train
