// The vector part of the prefilter: which positions of a text may be the beginning of a window. The
// binary is built for plain x86-64; which instructions there are is found out when it runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "evidence/buckets.h"
#include "evidence/windows.h"

namespace ezpz::evidence {

enum class Simd { none, ssse3, avx2, avx512 };  // avx512: with VBMI, VBMI2 and GFNI
Simd best_simd();

// Whether a window is one of those looked for, by a hash that is seldom wrong.
class WindowSet {
 public:
  void add(uint32_t folded) { bits_[slot(folded) / 32] |= 1U << slot(folded) % 32; }
  [[nodiscard]] bool may_contain(uint32_t folded) const {
    return (bits_[slot(folded) / 32] >> slot(folded) % 32 & 1U) != 0;
  }
  [[nodiscard]] const uint32_t* bits() const { return bits_.data(); }

  static constexpr uint32_t kFactor = 0x9E3779B1U;
  static constexpr int kShift = 16;

 private:
  static uint32_t slot(uint32_t folded) { return (folded * kFactor) >> kShift; }
  std::vector<uint32_t> bits_ = std::vector<uint32_t>((1U << (32 - kShift)) / 32);
};

struct Filter {
  std::array<NibbleTables, 2> nibbles;
  HashTables hashed;
  WindowSet windows;
};

constexpr size_t kSimdBlock = 64;              // positions looked at in one go
constexpr size_t kSimdReach = kSimdBlock + 3;  // bytes read for them

// Positions in [0, length) that pass, ascending; length is a multiple of kSimdBlock, at most 65536,
// and 3 bytes beyond it are readable. out has room for length + kSimdBlock positions.
size_t find_candidates(Simd, const Filter&, const char* text, size_t length, uint16_t* out);

}  // namespace ezpz::evidence
