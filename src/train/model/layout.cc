#include "train/model/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "train/kernels/random.h"

namespace ezpz::train {
namespace {

constexpr float kDeviation = 0.02F;

class UnitBuilder {
 public:
  UnitBuilder(std::string name, int slot, TensorParallel tp) : tp_(tp) {
    unit_.name = std::move(name);
    unit_.slot = slot;
  }

  UnitBuilder& vector(std::string name, int64_t length) {
    Parameter p;
    p.name = std::move(name);
    p.rows = length;
    p.whole_rows = length;
    return add(std::move(p));
  }

  UnitBuilder& matrix(std::string name, int64_t rows, int64_t columns, Split split,
                      float deviation = kDeviation) {
    Parameter p;
    p.name = std::move(name);
    p.rows = rows;
    p.columns = columns;
    p.whole_rows = rows;
    p.whole_columns = columns;
    p.split = split;
    p.initial = deviation > 0 ? Initial::normal : Initial::zeros;
    p.deviation = deviation;
    p.decay = true;
    if (split == Split::by_rows) {
      p.rows /= tp_.size;
      p.first_row = p.rows * tp_.rank;
    } else if (split == Split::by_columns) {
      p.columns /= tp_.size;
      p.first_column = p.columns * tp_.rank;
    }
    return add(std::move(p));
  }

  // Of the matrix added last.
  UnitBuilder& gradient_is_partial() {
    unit_.parameters.back().partial_gradient = tp_.size > 1;
    return *this;
  }

  UnitLayout done() { return std::move(unit_); }

 private:
  UnitBuilder& add(Parameter p) {
    p.offset = unit_.elements;
    unit_.elements += p.elements();
    unit_.parameters.push_back(std::move(p));
    return *this;
  }

  TensorParallel tp_;
  UnitLayout unit_;
};

}  // namespace

const Parameter& UnitLayout::find(const std::string& wanted) const {
  for (const Parameter& p : parameters) {
    if (p.name == wanted) return p;
  }
  std::abort();
}

std::vector<UnitLayout> unit_layouts(const bench::ModelShape& shape, TensorParallel tp) {
  std::vector<UnitLayout> units;
  units.push_back(UnitBuilder("embed", 0, tp)
                      .matrix("model.embed_tokens.weight", shape.vocab, shape.dim, Split::by_rows)
                      .done());
  // Products that write into the residual stream start smaller, so that its variance does not grow
  // with depth.
  const float into_residual =
      kDeviation / std::sqrt(2.0F * static_cast<float>(std::max<int64_t>(shape.layers, 1)));
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    units.push_back(
        UnitBuilder("block " + std::to_string(i), 1 + static_cast<int>(i % 2), tp)
            .vector(at + "input_layernorm.weight", shape.dim)
            .matrix(at + "self_attn.q_proj.weight", shape.dim, shape.dim, Split::by_rows)
            .matrix(at + "self_attn.k_proj.weight", shape.kv_dim(), shape.dim, Split::by_rows)
            .matrix(at + "self_attn.v_proj.weight", shape.kv_dim(), shape.dim, Split::by_rows)
            .matrix(at + "self_attn.o_proj.weight", shape.dim, shape.dim, Split::by_columns,
                    into_residual)
            .vector(at + "post_attention_layernorm.weight", shape.dim)
            .matrix(at + "mlp.gate_proj.weight", shape.hidden, shape.dim, Split::by_rows)
            .matrix(at + "mlp.up_proj.weight", shape.hidden, shape.dim, Split::by_rows)
            .matrix(at + "mlp.down_proj.weight", shape.dim, shape.hidden, Split::by_columns,
                    into_residual)
            .done());
  }
  // The embedding of a tied model is still held when its head is.
  UnitBuilder head("head", shape.tied ? 3 : 0, tp);
  head.vector("model.norm.weight", shape.dim);
  if (!shape.tied) head.matrix("lm_head.weight", shape.vocab, shape.dim, Split::by_rows);
  units.push_back(head.done());
  return units;
}

std::vector<UnitLayout> adapter_layouts(const bench::ModelShape& shape, const bench::Lora& lora,
                                        TensorParallel tp) {
  struct Adapted {
    const char* name;
    int64_t in;
    int64_t out;
  };
  std::vector<UnitLayout> units;
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string at = "base_model.model.model.layers." + std::to_string(i) + ".";
    UnitBuilder unit("adapters " + std::to_string(i), static_cast<int>(i % 2), tp);
    // PEFT's: uniform with this deviation; here normal, because that is what is counted.
    const auto a_deviation = [](int64_t in) {
      return static_cast<float>(1 / std::sqrt(3.0 * static_cast<double>(in)));
    };
    // Those whose outputs are divided: A is whole, and a rank sees a part of its gradient.
    const auto by_rows = [&](const std::vector<Adapted>& group) {
      for (const Adapted& m : group) {
        unit.matrix(at + m.name + ".lora_A.weight", lora.rank, m.in, Split::whole,
                    a_deviation(m.in))
            .gradient_is_partial();
      }
      for (const Adapted& m : group) {
        unit.matrix(at + m.name + ".lora_B.weight", m.out, lora.rank, Split::by_rows, 0);
      }
    };
    // Whose inputs are divided: B is whole, and a rank has a part of what it multiplies.
    const auto by_columns = [&](const Adapted& m) {
      unit.matrix(at + m.name + ".lora_A.weight", lora.rank, m.in, Split::by_columns,
                  a_deviation(m.in));
      unit.matrix(at + m.name + ".lora_B.weight", m.out, lora.rank, Split::whole, 0)
          .gradient_is_partial();
    };
    if (lora.attention) {
      by_rows({{"self_attn.q_proj", shape.dim, shape.dim},
               {"self_attn.k_proj", shape.dim, shape.kv_dim()},
               {"self_attn.v_proj", shape.dim, shape.kv_dim()}});
      by_columns({"self_attn.o_proj", shape.dim, shape.dim});
    }
    if (lora.feed_forward) {
      by_rows(
          {{"mlp.gate_proj", shape.dim, shape.hidden}, {"mlp.up_proj", shape.dim, shape.hidden}});
      by_columns({"mlp.down_proj", shape.hidden, shape.dim});
    }
    units.push_back(unit.done());
  }
  return units;
}

void initialize(float* out, const UnitLayout& unit, int64_t begin, int64_t end, uint64_t seed) {
  for (const Parameter& p : unit.parameters) {
    int64_t from = std::max(begin, p.offset);
    const int64_t to = std::min(end, p.offset + p.elements());
    if (from >= to) continue;
    if (p.initial != Initial::normal) {
      std::fill(out + (from - begin), out + (to - begin), p.initial == Initial::ones ? 1.0F : 0.0F);
      continue;
    }
    const uint64_t key = stream_key(seed, p.name);
    const bool contiguous = p.columns == p.whole_columns;
    while (from < to) {
      const int64_t row = (from - p.offset) / p.columns;
      const int64_t column = (from - p.offset) % p.columns;
      const int64_t run = contiguous ? to - from : std::min(to - from, p.columns - column);
      const int64_t first = (p.first_row + row) * p.whole_columns + p.first_column + column;
      normal_fill(out + (from - begin), run, key, static_cast<uint64_t>(first), p.deviation);
      from += run;
    }
  }
  // Padding behind the last parameter is never read as a parameter, but it is summed and sent.
  const int64_t padding = std::max(begin, unit.elements);
  if (padding < end) std::fill(out + (padding - begin), out + (end - begin), 0.0F);
}

}  // namespace ezpz::train
