#include "evidence/survey.h"

#include <bit>
#include <cstddef>

#include "evidence/escapes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own header: "undefined" vectors there are initialised with themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ezpz::evidence {
namespace {

Survey survey_plainly(std::string_view text) {
  Survey seen;
  for (const char c : text) {
    seen.newlines += c == '\n' ? 1 : 0;
    seen.dirty |= is_dirty(c);
  }
  return seen;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,popcnt"))) Survey survey_avx512(std::string_view text) {
  const __m512i newline = _mm512_set1_epi8('\n');
  const __m512i escape = _mm512_set1_epi8('\x1b');
  const char* at = text.data();
  size_t left = text.size();
  int64_t newlines = 0;
  uint64_t dirty = 0;
  for (; left >= 64; left -= 64, at += 64) {
    const __m512i bytes = _mm512_loadu_si512(at);
    newlines += std::popcount(_mm512_cmpeq_epi8_mask(bytes, newline));
    dirty |= _mm512_cmpeq_epi8_mask(bytes, escape) | _mm512_testn_epi8_mask(bytes, bytes);
  }
  const uint64_t there = (uint64_t{1} << left) - 1;
  const __m512i bytes = _mm512_maskz_loadu_epi8(there, at);
  newlines += std::popcount(_mm512_cmpeq_epi8_mask(bytes, newline));
  dirty |= _mm512_cmpeq_epi8_mask(bytes, escape) | _mm512_mask_testn_epi8_mask(there, bytes, bytes);
  return {newlines, dirty != 0};
}

__attribute__((target("avx2"))) Survey survey_avx2(std::string_view text) {
  constexpr size_t kStep = 32;
  const __m256i newline = _mm256_set1_epi8('\n');
  const __m256i escape = _mm256_set1_epi8('\x1b');
  const __m256i zero = _mm256_setzero_si256();
  const char* at = text.data();
  size_t left = text.size();
  __m256i sums = zero;
  __m256i dirty = zero;
  while (left >= kStep) {
    // Matches are -1 a byte: subtracting counts them, at most 255 rounds before a byte is full.
    __m256i counts = zero;
    for (int round = 0; round < 255 && left >= kStep; ++round, left -= kStep, at += kStep) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
      counts = _mm256_sub_epi8(counts, _mm256_cmpeq_epi8(bytes, newline));
      dirty = _mm256_or_si256(
          dirty, _mm256_or_si256(_mm256_cmpeq_epi8(bytes, escape), _mm256_cmpeq_epi8(bytes, zero)));
    }
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(counts, zero));
  }
  alignas(kStep) int64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
  Survey seen = survey_plainly({at, left});
  seen.newlines += lanes[0] + lanes[1] + lanes[2] + lanes[3];
  seen.dirty |= _mm256_testz_si256(dirty, dirty) == 0;
  return seen;
}
#endif

}  // namespace

Survey survey(std::string_view text, Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::avx512) return survey_avx512(text);
  if (simd == Simd::avx2) return survey_avx2(text);
#endif
  (void)simd;
  return survey_plainly(text);
}

}  // namespace ezpz::evidence
