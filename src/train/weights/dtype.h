// The element types of a safetensors file, and the three the trainer computes from: F32, F16, BF16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ezpz::train {

enum class DType {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  u16,
  i16,
  f16,
  bf16,
  u32,
  i32,
  f32,
  u64,
  i64,
  f64,
};

size_t dtype_bytes(DType);
std::string_view dtype_word(DType);  // "F32", "BF16", ... as safetensors spells them
std::optional<DType> parse_dtype(std::string_view word);
// Whether to_f32 and from_f32 know it.
bool is_trainable(DType);

// count elements at `from` (little-endian, any alignment) to floats, exactly.
void to_f32(DType, const void* from, float* to, size_t count);
// The reverse, rounded to nearest, ties to even; too large becomes infinity, NaN stays NaN.
void from_f32(DType, const float* from, void* to, size_t count);

}  // namespace ezpz::train
