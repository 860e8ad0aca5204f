#include "evidence/prefilter_simd.h"

#include <bit>

#include "evidence/prefilter_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ezpz::evidence {
namespace {

// Adds the positions of a mask's bits whose window is known.
void add_known(const WindowSet& windows, const char* text, size_t at, uint32_t passed,
               uint16_t* out, size_t* found) {
  for (; passed != 0; passed &= passed - 1) {
    const size_t position = at + static_cast<size_t>(std::countr_zero(passed));
    out[*found] = static_cast<uint16_t>(position);
    // No branch: whether a window is known cannot be guessed.
    *found += windows.may_contain(fold_window(window_at(text + position))) ? 1 : 0;
  }
}

#if defined(__x86_64__)
// The two versions differ in width only. Each names its instruction set itself and is called only
// where the processor has it.

// The buckets of one set that accept each position.
__attribute__((target("avx2"))) inline __m256i accepting(const NibbleTables& tables,
                                                         const __m256i* low_nibbles,
                                                         const __m256i* high_nibbles) {
  __m256i buckets = _mm256_set1_epi8(-1);
  for (size_t i = 0; i < kWindow; ++i) {
    const __m256i low = _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(tables.low[i].data())));
    const __m256i high = _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(tables.high[i].data())));
    buckets = _mm256_and_si256(buckets, _mm256_shuffle_epi8(low, low_nibbles[i]));
    buckets = _mm256_and_si256(buckets, _mm256_shuffle_epi8(high, high_nibbles[i]));
  }
  return buckets;
}

__attribute__((target("avx2,bmi"))) size_t find_avx2(const Filter& filter, const char* text,
                                                     size_t length, uint16_t* out) {
  const __m256i nibble = _mm256_set1_epi8(0x0f);
  const __m256i fold = _mm256_set1_epi8(0x20);
  size_t found = 0;
  for (size_t at = 0; at < length; at += 32) {
    __m256i low[kWindow];
    __m256i high[kWindow];
    for (size_t i = 0; i < kWindow; ++i) {
      const __m256i bytes = _mm256_or_si256(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + at + i)), fold);
      low[i] = _mm256_and_si256(bytes, nibble);
      high[i] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
    }
    const __m256i buckets = _mm256_or_si256(accepting(filter.nibbles[0], low, high),
                                            accepting(filter.nibbles[1], low, high));
    const __m256i none = _mm256_cmpeq_epi8(buckets, _mm256_setzero_si256());
    const auto passed = ~static_cast<uint32_t>(_mm256_movemask_epi8(none));
    add_known(filter.windows, text, at, passed, out, &found);
  }
  return found;
}

__attribute__((target("ssse3"))) inline __m128i accepting(const NibbleTables& tables,
                                                          const __m128i* low_nibbles,
                                                          const __m128i* high_nibbles) {
  __m128i buckets = _mm_set1_epi8(-1);
  for (size_t i = 0; i < kWindow; ++i) {
    const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(tables.low[i].data()));
    const __m128i high = _mm_load_si128(reinterpret_cast<const __m128i*>(tables.high[i].data()));
    buckets = _mm_and_si128(buckets, _mm_shuffle_epi8(low, low_nibbles[i]));
    buckets = _mm_and_si128(buckets, _mm_shuffle_epi8(high, high_nibbles[i]));
  }
  return buckets;
}

__attribute__((target("ssse3"))) size_t find_ssse3(const Filter& filter, const char* text,
                                                   size_t length, uint16_t* out) {
  const __m128i nibble = _mm_set1_epi8(0x0f);
  const __m128i fold = _mm_set1_epi8(0x20);
  size_t found = 0;
  for (size_t at = 0; at < length; at += 16) {
    __m128i low[kWindow];
    __m128i high[kWindow];
    for (size_t i = 0; i < kWindow; ++i) {
      const __m128i bytes =
          _mm_or_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(text + at + i)), fold);
      low[i] = _mm_and_si128(bytes, nibble);
      high[i] = _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble);
    }
    const __m128i buckets = _mm_or_si128(accepting(filter.nibbles[0], low, high),
                                         accepting(filter.nibbles[1], low, high));
    const __m128i none = _mm_cmpeq_epi8(buckets, _mm_setzero_si128());
    const auto passed = static_cast<uint32_t>(_mm_movemask_epi8(none)) ^ 0xffffU;
    add_known(filter.windows, text, at, passed, out, &found);
  }
  return found;
}
#endif

size_t find_plainly(const Filter& filter, const char* text, size_t length, uint16_t* out) {
  size_t found = 0;
  for (size_t at = 0; at < length; ++at) add_known(filter.windows, text, at, 1, out, &found);
  return found;
}

}  // namespace

#if defined(__x86_64__)
Simd best_simd() {
  if (has_avx512()) return Simd::avx512;
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0) return Simd::avx2;
  if (__builtin_cpu_supports("ssse3") != 0) return Simd::ssse3;
  return Simd::none;
}

size_t find_candidates(Simd simd, const Filter& filter, const char* text, size_t length,
                       uint16_t* out) {
  switch (simd) {
    case Simd::avx512:
      return find_candidates_avx512(filter, text, length, out);
    case Simd::avx2:
      return find_avx2(filter, text, length, out);
    case Simd::ssse3:
      return find_ssse3(filter, text, length, out);
    case Simd::none:
      break;
  }
  return find_plainly(filter, text, length, out);
}
#else
Simd best_simd() { return Simd::none; }
size_t find_candidates(Simd, const Filter& filter, const char* text, size_t length, uint16_t* out) {
  return find_plainly(filter, text, length, out);
}
#endif

}  // namespace ezpz::evidence
