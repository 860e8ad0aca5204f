// The prefilter for processors with AVX-512 (VBMI, VBMI2, GFNI: Ice Lake, Zen 4 and later).
#pragma once

#include <cstddef>
#include <cstdint>

#include "evidence/prefilter_simd.h"

namespace ezpz::evidence {

bool has_avx512();
// As find_candidates(); called only where has_avx512().
size_t find_candidates_avx512(const Filter&, const char* text, size_t length, uint16_t* out);

}  // namespace ezpz::evidence
