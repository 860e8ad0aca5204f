// Terminal escapes and NUL bytes taken out of the text before it is matched (never out of the log).
// Colours stand inside tokens: "iter\x1b[0m=\x1b[36m42" must read "iter=42".
#pragma once

#include <string>
#include <string_view>

#include "evidence/prefilter_simd.h"

namespace ezpz::evidence {

// A byte that makes a text worth stripping.
inline bool is_dirty(char c) { return c == '\x1b' || c == '\0'; }
bool holds_dirty(std::string_view text);

// Removes CSI, OSC (and the other string sequences), two-byte escapes and NUL. A string sequence
// without its end loses only its first two bytes: it must not swallow an error message. Nothing
// reaches over the end of a segment (lines.h), so many of them may be stripped in one go; of one
// longer than longest_segment what lies beyond is dropped.
void strip_escapes(std::string_view segments, size_t longest_segment, std::string* out,
                   Simd simd = best_simd());
inline void strip_escapes(std::string_view segments, std::string* out) {
  strip_escapes(segments, segments.size(), out);
}

// The run of plain text and control sequences that the text begins with, stripped, with AVX-512.
// Returns how much was read; *written is how much was written to out, which has room for the
// text and 64 bytes more. Called only where the processor has Simd::avx512.
size_t strip_colours_avx512(std::string_view text, char* out, size_t* written);

}  // namespace ezpz::evidence
