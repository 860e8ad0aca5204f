// Random numbers without state: number `counter` of stream `stream` under `seed`. The same on every
// rank, in any order, for any world size.
#pragma once

#include <cstdint>

namespace ezpz::train {

// A bijection that leaves no structure (the finalizer of SplitMix64).
inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

inline uint64_t random_at(uint64_t seed, uint64_t stream, uint64_t counter) {
  const uint64_t key = mix64(seed + 0x9e3779b97f4a7c15ULL * (stream + 1));
  return mix64(key + 0x9e3779b97f4a7c15ULL * (counter + 1));
}

// [0, 1)
inline double unit_at(uint64_t seed, uint64_t stream, uint64_t counter) {
  return static_cast<double>(random_at(seed, stream, counter) >> 11U) * 0x1p-53;
}

}  // namespace ezpz::train
