#include "evidence/lines.h"

#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ezpz::evidence {
namespace {

#if defined(__SSE2__)
unsigned separator_mask(const char* at) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i newline = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
  const __m128i carriage_return = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r'));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(newline, carriage_return)));
}
#endif

}  // namespace

const char* find_separator(const char* begin, const char* end) {
#if defined(__SSE2__)
  for (; end - begin >= 16; begin += 16) {
    if (const unsigned mask = separator_mask(begin)) return begin + std::countr_zero(mask);
  }
#endif
  while (begin < end && !is_separator(*begin)) ++begin;
  return begin;
}

const char* segment_start(const char* begin, const char* end) {
#if defined(__SSE2__)
  for (; end - begin >= 16; end -= 16) {
    if (const unsigned mask = separator_mask(end - 16)) return end - 16 + std::bit_width(mask);
  }
#endif
  while (end > begin && !is_separator(end[-1])) --end;
  return end;
}

Newlines count_newlines(const char* begin, const char* end) {
  Newlines found;
  const char* at = begin;
#if defined(__SSE2__)
  const __m128i newline = _mm_set1_epi8('\n');
  while (end - at >= 16) {
    // Matches are -1 a byte: subtracting counts them, at most 255 rounds before a byte is full.
    __m128i counts = _mm_setzero_si128();
    for (int round = 0; round < 255 && end - at >= 16; ++round, at += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      counts = _mm_sub_epi8(counts, _mm_cmpeq_epi8(bytes, newline));
    }
    const __m128i sums = _mm_sad_epu8(counts, _mm_setzero_si128());
    found.count += _mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
  }
#endif
  for (; at < end; ++at) found.count += *at == '\n' ? 1 : 0;
  if (found.count > 0) {
    found.last = static_cast<const char*>(memrchr(begin, '\n', static_cast<size_t>(end - begin)));
  }
  return found;
}

const char* behind_newline(const char* begin, const char* end, int64_t n) {
  // By blocks, so that not every newline on the way costs a call.
  constexpr ptrdiff_t kBlock = 4096;
  while (end - begin > kBlock) {
    const int64_t here = count_newlines(begin, begin + kBlock).count;
    if (here >= n) break;
    n -= here;
    begin += kBlock;
  }
  for (; n > 0; --n) {
    begin = static_cast<const char*>(memchr(begin, '\n', static_cast<size_t>(end - begin))) + 1;
  }
  return begin;
}

}  // namespace ezpz::evidence
