#include "evidence/prefilter_avx512.h"

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
#define EZPZ_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,popcnt,bmi,bmi2")))

namespace {

constexpr int64_t matrix(const BitRows& rows) {
  uint64_t packed = 0;
  for (size_t i = 0; i < rows.size(); ++i) packed |= uint64_t{rows[i]} << 8 * (7 - i);
  return static_cast<int64_t>(packed);
}

EZPZ_AVX512 inline __m512i hash_pair(const char* at) {
  const __m512i first = _mm512_loadu_si512(at);
  const __m512i second = _mm512_loadu_si512(at + 1);
  return _mm512_xor_si512(
      _mm512_gf2p8affine_epi64_epi8(first, _mm512_set1_epi64(matrix(kFirstOfPair)), 0),
      _mm512_gf2p8affine_epi64_epi8(second, _mm512_set1_epi64(matrix(kSecondOfPair)), 0));
}

// Those of the positions whose window is in the set: sixteen windows are fetched, hashed and looked
// up at a time. in and out may be the same.
EZPZ_AVX512 size_t keep_known(const WindowSet& windows, const char* text, const uint16_t* in,
                              size_t count, uint16_t* out) {
  const __m512i fold = _mm512_set1_epi32(0x20202020);
  const __m512i factor = _mm512_set1_epi32(static_cast<int>(WindowSet::kFactor));
  const __m512i one = _mm512_set1_epi32(1);
  size_t kept = 0;
  for (size_t i = 0; i < count; i += 16) {
    const auto wanted =
        static_cast<__mmask16>(count - i >= 16 ? 0xffffU : (1U << (count - i)) - 1U);
    const __m256i positions = _mm256_maskz_loadu_epi16(wanted, in + i);
    const __m512i wide = _mm512_cvtepu16_epi32(positions);
    const __m512i words = _mm512_or_si512(
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), wanted, wide, text, 1), fold);
    const __m512i slots = _mm512_srli_epi32(_mm512_mullo_epi32(words, factor), WindowSet::kShift);
    const __m512i bits = _mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), wanted, _mm512_srli_epi32(slots, 5), windows.bits(), 4);
    const __m512i bit = _mm512_srlv_epi32(bits, _mm512_and_si512(slots, _mm512_set1_epi32(31)));
    const __mmask16 known = _mm512_mask_test_epi32_mask(wanted, bit, one);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + kept),
                        _mm256_maskz_compress_epi16(known, positions));
    kept += static_cast<size_t>(_mm_popcnt_u32(known));
  }
  return kept;
}

}  // namespace

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vbmi") != 0 &&
         __builtin_cpu_supports("avx512vbmi2") != 0 && __builtin_cpu_supports("gfni") != 0 &&
         __builtin_cpu_supports("bmi2") != 0;
}

EZPZ_AVX512 size_t find_candidates_avx512(const Filter& filter, const char* text, size_t length,
                                          uint16_t* out) {
  __m512i accepts[6];
  for (size_t i = 0; i < 6; ++i) {
    accepts[i] = _mm512_load_si512(filter.hashed.accepts[i].data());
  }
  alignas(64) static constexpr auto kNumbers = [] {
    std::array<uint8_t, 64> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i);
    return numbers;
  }();
  const __m512i numbers = _mm512_load_si512(kNumbers.data());
  size_t found = 0;
  for (size_t at = 0; at < length; at += 64) {
    const __m512i front = hash_pair(text + at);
    const __m512i back = hash_pair(text + at + 2);
    const __m512i both = _mm512_add_epi8(front, back);
    // A lookup takes the low six bits of each byte, so the shift may mix the bytes above them.
    const __m512i a = _mm512_permutexvar_epi8(front, accepts[0]);
    const __m512i b = _mm512_permutexvar_epi8(_mm512_srli_epi16(front, 2), accepts[1]);
    const __m512i c = _mm512_permutexvar_epi8(back, accepts[2]);
    const __m512i d = _mm512_permutexvar_epi8(_mm512_srli_epi16(back, 2), accepts[3]);
    const __m512i e = _mm512_permutexvar_epi8(both, accepts[4]);
    const __m512i f = _mm512_permutexvar_epi8(_mm512_srli_epi16(both, 2), accepts[5]);
    constexpr int kAnd = 0x80;
    const __m512i abc = _mm512_ternarylogic_epi64(a, b, c, kAnd);
    const __m512i def = _mm512_ternarylogic_epi64(d, e, f, kAnd);
    const __mmask64 passed = _mm512_test_epi8_mask(abc, def);
    // Stored whether any passed or not: a branch would be guessed wrong too often.
    const __m512i packed = _mm512_maskz_compress_epi8(passed, numbers);
    const __m512i base = _mm512_set1_epi16(static_cast<int16_t>(at));
    _mm512_storeu_si512(
        out + found, _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(packed)), base));
    const auto count = static_cast<size_t>(_mm_popcnt_u64(passed));
    if (count > 32) {
      _mm512_storeu_si512(
          out + found + 32,
          _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(packed, 1)), base));
    }
    found += count;
  }
  return keep_known(filter.windows, text, out, found, out);
}
#else
bool has_avx512() { return false; }
size_t find_candidates_avx512(const Filter&, const char*, size_t, uint16_t*) { return 0; }
#endif

}  // namespace ezpz::evidence
