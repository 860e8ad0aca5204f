#include "evidence/prefilter_simd.h"

#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ezpz::evidence {

#if defined(__x86_64__)
namespace {

// The two versions differ in width only. The binary is built for plain x86-64, so each function
// names its instruction set itself and is called only where the processor has it.

__attribute__((target("avx2"))) size_t find_avx2(const NibbleTables& tables, const char* text,
                                                 size_t length, uint16_t* out) {
  const __m256i nibble = _mm256_set1_epi8(0x0f);
  __m256i low[4];
  __m256i high[4];
  for (size_t i = 0; i < 4; ++i) {
    low[i] = _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(tables.low[i].data())));
    high[i] = _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(tables.high[i].data())));
  }
  size_t found = 0;
  for (size_t at = 0; at < length; at += 32) {
    __m256i buckets = _mm256_set1_epi8(-1);
    for (size_t i = 0; i < 4; ++i) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + at + i));
      const __m256i high_nibbles = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
      const __m256i low_nibbles = _mm256_and_si256(bytes, nibble);
      buckets = _mm256_and_si256(buckets, _mm256_shuffle_epi8(low[i], low_nibbles));
      buckets = _mm256_and_si256(buckets, _mm256_shuffle_epi8(high[i], high_nibbles));
    }
    const __m256i none = _mm256_cmpeq_epi8(buckets, _mm256_setzero_si256());
    auto passed = ~static_cast<unsigned>(_mm256_movemask_epi8(none));
    for (; passed != 0; passed &= passed - 1) {
      out[found++] = static_cast<uint16_t>(at + static_cast<size_t>(std::countr_zero(passed)));
    }
  }
  return found;
}

__attribute__((target("ssse3"))) size_t find_ssse3(const NibbleTables& tables, const char* text,
                                                   size_t length, uint16_t* out) {
  const __m128i nibble = _mm_set1_epi8(0x0f);
  size_t found = 0;
  for (size_t at = 0; at < length; at += 16) {
    __m128i buckets = _mm_set1_epi8(-1);
    for (size_t i = 0; i < 4; ++i) {
      const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(tables.low[i].data()));
      const __m128i high = _mm_load_si128(reinterpret_cast<const __m128i*>(tables.high[i].data()));
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + at + i));
      const __m128i high_nibbles = _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble);
      const __m128i low_nibbles = _mm_and_si128(bytes, nibble);
      buckets = _mm_and_si128(buckets, _mm_shuffle_epi8(low, low_nibbles));
      buckets = _mm_and_si128(buckets, _mm_shuffle_epi8(high, high_nibbles));
    }
    const __m128i none = _mm_cmpeq_epi8(buckets, _mm_setzero_si128());
    auto passed = static_cast<unsigned>(_mm_movemask_epi8(none)) ^ 0xffffU;
    for (; passed != 0; passed &= passed - 1) {
      out[found++] = static_cast<uint16_t>(at + static_cast<size_t>(std::countr_zero(passed)));
    }
  }
  return found;
}

}  // namespace

Simd best_simd() {
  if (__builtin_cpu_supports("avx2") != 0) return Simd::avx2;
  if (__builtin_cpu_supports("ssse3") != 0) return Simd::ssse3;
  return Simd::none;
}

size_t find_candidates(Simd simd, const NibbleTables& tables, const char* text, size_t length,
                       uint16_t* out) {
  return simd == Simd::avx2 ? find_avx2(tables, text, length, out)
                            : find_ssse3(tables, text, length, out);
}
#else
Simd best_simd() { return Simd::none; }
size_t find_candidates(Simd, const NibbleTables&, const char*, size_t, uint16_t*) { return 0; }
#endif

}  // namespace ezpz::evidence
