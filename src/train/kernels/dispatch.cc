#include "train/kernels/simd.h"

namespace ezpz::train {

extern const Simd kSimd_baseline;
#ifdef __x86_64__
extern const Simd kSimd_avx2;
extern const Simd kSimd_avx512;
#endif

namespace {

const Simd& widest() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return kSimd_avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return kSimd_avx2;
  }
#endif
  return kSimd_baseline;
}

}  // namespace

const Simd& simd() {
  static const Simd& chosen = widest();
  return chosen;
}

}  // namespace ezpz::train
