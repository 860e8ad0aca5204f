// The windows as tables for the vector filter. They are shared out among eight buckets, one for
// each bit of a byte; a table names, for what it looks at, the buckets that accept it. A position
// of the text passes when some bucket accepts it in all tables: wrong "yes" is allowed, wrong "no"
// not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ezpz::evidence {

constexpr size_t kBuckets = 8;

// For processors that look up 16 entries at a time: the nibbles of each byte of the window. They
// say little, so there are two of these with eight buckets each.
struct NibbleTables {
  alignas(16) std::array<std::array<uint8_t, 16>, 4> low{};
  alignas(16) std::array<std::array<uint8_t, 16>, 4> high{};
};

// For those that look up 64: three hashes of the window, one byte each, two six-bit parts of each.
// A hash says more than nibbles do, because what it accepts is whole windows.
struct HashTables {
  alignas(64) std::array<std::array<uint8_t, 64>, 6> accepts{};
};

// How a byte of the text enters a hash: bit i of the result is the parity of the byte's bits in
// row i. Bit 5, the case of a letter, is in no row.
using BitRows = std::array<uint8_t, 8>;
constexpr BitRows kFirstOfPair{0x01, 0x02, 0x04, 0x88, 0x10, 0x40, 0x4a, 0x15};
constexpr BitRows kSecondOfPair{0x14, 0x89, 0x40, 0x10, 0x08, 0x04, 0x02, 0x01};

std::array<NibbleTables, 2> nibble_tables(std::vector<uint32_t> folded_windows);
HashTables hash_tables(std::vector<uint32_t> folded_windows);

}  // namespace ezpz::evidence
