#include "train/weights/dtype.h"

#include <string.h>

#include <array>

namespace ezpz::train {
namespace {

struct Kind {
  std::string_view word;
  size_t bytes;
};

// In the order of the enumeration.
constexpr std::array<Kind, 15> kKinds{{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"U16", 2},
    {"I16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"U32", 4},
    {"I32", 4},
    {"F32", 4},
    {"U64", 8},
    {"I64", 8},
    {"F64", 8},
}};

uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16U;
  const uint32_t exponent = (half >> 10U) & 0x1fU;
  const uint32_t fraction = half & 0x3ffU;
  if (exponent == 0x1f) return float_of(sign | 0x7f800000U | (fraction << 13U));
  if (exponent != 0) return float_of(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
  // Zero or subnormal: fraction * 2^-24, which a float holds exactly.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return float_of(sign | bits_of(magnitude));
}

uint16_t float_to_half(float value) {
  const uint32_t bits = bits_of(value);
  const auto sign = static_cast<uint16_t>((bits >> 16U) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN: keep what fits of the payload, and never make it infinity
    return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13U) & 0x1ffU));
  }
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // rounds to 65536 or beyond
  if (magnitude < 0x38800000U) {                        // below the smallest normal half
    // Adding 0.5 puts the last bit of a subnormal half at the last bit of the float's fraction, so
    // the processor does the rounding.
    const float shifted = float_of(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (bits_of(shifted) - bits_of(0.5F)));
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13U) & 1U);
  return static_cast<uint16_t>(sign | ((rounded - (112U << 23U)) >> 13U));
}

uint16_t float_to_bfloat(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

uint16_t load16(const void* from, size_t index) {
  uint16_t value;
  memcpy(&value, static_cast<const char*>(from) + index * sizeof value, sizeof value);
  return value;
}

void store16(void* to, size_t index, uint16_t value) {
  memcpy(static_cast<char*>(to) + index * sizeof value, &value, sizeof value);
}

}  // namespace

size_t dtype_bytes(DType type) { return kKinds[static_cast<size_t>(type)].bytes; }

std::string_view dtype_word(DType type) { return kKinds[static_cast<size_t>(type)].word; }

std::optional<DType> parse_dtype(std::string_view word) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].word == word) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_trainable(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

void to_f32(DType type, const void* from, float* to, size_t count) {
  if (count == 0) return;
  switch (type) {
    case DType::f16:
      for (size_t i = 0; i < count; ++i) to[i] = half_to_float(load16(from, i));
      return;
    case DType::bf16:
      for (size_t i = 0; i < count; ++i) {
        to[i] = float_of(static_cast<uint32_t>(load16(from, i)) << 16U);
      }
      return;
    default:
      memcpy(to, from, count * sizeof(float));
  }
}

void from_f32(DType type, const float* from, void* to, size_t count) {
  if (count == 0) return;
  switch (type) {
    case DType::f16:
      for (size_t i = 0; i < count; ++i) store16(to, i, float_to_half(from[i]));
      return;
    case DType::bf16:
      for (size_t i = 0; i < count; ++i) store16(to, i, float_to_bfloat(from[i]));
      return;
    default:
      memcpy(to, from, count * sizeof(float));
  }
}

}  // namespace ezpz::train
