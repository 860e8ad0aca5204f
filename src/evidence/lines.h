// Where lines and segments end, at memory speed. A line ends at '\n'; a segment, the unit of
// matching, ends at '\n' or '\r', so that every state of a progress bar is looked at by itself.
#pragma once

#include <cstdint>

namespace ezpz::evidence {

inline bool is_separator(char c) { return c == '\n' || c == '\r'; }

// The first separator in [begin, end), or end.
const char* find_separator(const char* begin, const char* end);
// One past the last separator in [begin, end), or begin: where the segment that ends at end starts.
const char* segment_start(const char* begin, const char* end);

struct Newlines {
  int64_t count = 0;
  const char* last = nullptr;  // the last one; nullptr when there is none
};
Newlines count_newlines(const char* begin, const char* end);
// One past the n-th newline of [begin, end), which holds as many.
const char* behind_newline(const char* begin, const char* end, int64_t n);

}  // namespace ezpz::evidence
