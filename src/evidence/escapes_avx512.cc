#include <bit>

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

#if defined(__x86_64__)

// Sixty-four bytes at a time, as bit masks. What is no control sequence ("ESC [") ends the run.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt,bmi,bmi2"))) size_t
strip_colours_avx512(std::string_view text, char* out, size_t* written) {
  const __m512i escape = _mm512_set1_epi8('\x1b');
  const __m512i bracket = _mm512_set1_epi8('[');
  char* const begin = out;
  size_t at = 0;
  while (at < text.size()) {
    size_t width = text.size() - at;
    const uint64_t there = width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    width = width >= 64 ? 64 : width;
    const __m512i bytes = _mm512_maskz_loadu_epi8(there, text.data() + at);
    uint64_t starts = _mm512_mask_cmpeq_epi8_mask(there, bytes, escape);
    uint64_t dropped = _mm512_mask_testn_epi8_mask(there, bytes, bytes);  // NUL
    if (starts != 0) {
      const uint64_t brackets = _mm512_cmpeq_epi8_mask(bytes, bracket);
      // The first escape that is something else, or whose second byte is not in this block.
      const uint64_t strange = starts & ~(brackets >> 1);
      if (strange != 0) {
        width = static_cast<size_t>(std::countr_zero(strange));
        starts &= (uint64_t{1} << width) - 1;
      }
      const uint64_t parameters = _mm512_cmp_epu8_mask(
          _mm512_sub_epi8(bytes, _mm512_set1_epi8(0x20)), _mm512_set1_epi8(0x20), _MM_CMPINT_LT);
      const uint64_t finals = _mm512_cmp_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8(0x40)),
                                                   _mm512_set1_epi8(0x3f), _MM_CMPINT_LT);
      // A carry runs from behind each bracket through the parameters to what ends them.
      uint64_t ends = ((starts << 2) + parameters) & ~parameters;
      if (starts != 0 && std::popcount(ends & there) < std::popcount(starts)) {
        // The last one is not whole in this block.
        const int last = 63 - std::countl_zero(starts);
        width = static_cast<size_t>(last);
        starts &= ~(uint64_t{1} << last);
        ends = ((starts << 2) + parameters) & ~parameters;
      }
      // From each escape up to the end, which goes too if it belongs to the sequence.
      dropped |= (ends - starts) | (ends & finals);
      if (width == 0) break;
    }
    const uint64_t kept = (width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1) & ~dropped;
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(kept, bytes));
    out += std::popcount(kept);
    at += width;
  }
  *written = static_cast<size_t>(out - begin);
  return at;
}
#else
size_t strip_colours_avx512(std::string_view, char*, size_t* written) {
  *written = 0;
  return 0;
}
#endif

}  // namespace ezpz::evidence
