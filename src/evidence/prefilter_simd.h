// The vector part of the prefilter: a position passes when, for some bucket, each of its four bytes
// has both nibbles in that bucket's sets. Wrong "yes" is allowed, wrong "no" is not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ezpz::evidence {

enum class Simd { none, ssse3, avx2 };
Simd best_simd();

// Bit b of low[i][n]: bucket b accepts, at byte i of the window, a byte with low nibble n.
struct NibbleTables {
  alignas(16) std::array<std::array<uint8_t, 16>, 4> low{};
  alignas(16) std::array<std::array<uint8_t, 16>, 4> high{};
};

constexpr size_t kSimdBlock = 32;              // positions looked at in one go
constexpr size_t kSimdReach = kSimdBlock + 3;  // bytes read for them

// Positions in [0, length) that pass, ascending; length is a multiple of kSimdBlock and 3 bytes
// beyond it are readable. out has room for length positions.
size_t find_candidates(Simd, const NibbleTables&, const char* text, size_t length, uint16_t* out);

}  // namespace ezpz::evidence
