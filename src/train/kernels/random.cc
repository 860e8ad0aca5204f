#include "train/kernels/random.h"

#include <cmath>

namespace ezpz::train {
namespace {

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
constexpr int64_t kWorthThreads = 4096;

}  // namespace

uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t key = mix(seed + kGolden);
  for (const char c : name) key = mix((key ^ static_cast<unsigned char>(c)) + kGolden);
  return key;
}

uint64_t random_bits(uint64_t key, uint64_t i) { return mix(key + mix(i * kGolden + kGolden)); }

void normal_fill(float* out, int64_t n, uint64_t key, uint64_t first, float deviation) {
#pragma omp parallel for if (n > kWorthThreads)
  for (int64_t j = 0; j < n; ++j) {
    const uint64_t bits = random_bits(key, first + static_cast<uint64_t>(j));
    // Box and Muller; half a step away from 0, whose logarithm there is not.
    const float u = (static_cast<float>(bits >> 40) + 0.5F) * 0x1p-24F;
    const float angle = static_cast<float>((bits >> 8) & 0xffffff) * 0x1p-24F * 6.28318531F;
    out[j] = deviation * std::sqrt(-2.0F * std::log(u)) * std::cos(angle);
  }
}

}  // namespace ezpz::train
