#include "evidence/escapes.h"

#include <algorithm>
#include <cstddef>

#include "evidence/lines.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ezpz::evidence {
namespace {

bool in(char c, unsigned char low, unsigned char high) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

// One past the parameters, intermediates and final byte of a control sequence; text[at] follows
// "ESC [". A byte that cannot belong to it ends it and stays in the text.
size_t end_of_csi(std::string_view text, size_t at) {
  while (at < text.size() && in(text[at], 0x20, 0x3f)) ++at;
  return at < text.size() && in(text[at], 0x40, 0x7e) ? at + 1 : at;
}

// One past BEL or "ESC \", or `at` when the string has no end in this line. *unended remembers that
// none follows, so that a line full of openings costs no more than one look.
size_t end_of_string(std::string_view text, size_t at, bool* unended) {
  for (size_t i = at; i < text.size() && !*unended; ++i) {
    if (text[i] == '\a') return i + 1;
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '\\') return i + 2;
  }
  *unended = true;
  return at;
}

// text[at] is ESC.
size_t end_of_escape(std::string_view text, size_t at, bool* unended) {
  if (++at == text.size()) return at;
  switch (text[at]) {
    case '[':
      return end_of_csi(text, at + 1);
    case ']':
    case 'P':
    case 'X':
    case '^':
    case '_':
      return end_of_string(text, at + 1, unended);
    default:
      while (at < text.size() && in(text[at], 0x20, 0x2f)) ++at;
      return at < text.size() && in(text[at], 0x30, 0x7e) ? at + 1 : at;
  }
}

// The first dirty byte at or after `from`, or the text's size.
size_t find_dirty(std::string_view text, size_t from) {
#if defined(__SSE2__)
  const __m128i escape = _mm_set1_epi8('\x1b');
  const __m128i nul = _mm_setzero_si128();
  const auto dirty_in = [&](size_t at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    return _mm_or_si128(_mm_cmpeq_epi8(bytes, escape), _mm_cmpeq_epi8(bytes, nul));
  };
  for (; text.size() - from >= 64; from += 64) {
    const __m128i any = _mm_or_si128(_mm_or_si128(dirty_in(from), dirty_in(from + 16)),
                                     _mm_or_si128(dirty_in(from + 32), dirty_in(from + 48)));
    if (_mm_movemask_epi8(any) != 0) break;
  }
#endif
  while (from < text.size() && !is_dirty(text[from])) ++from;
  return from;
}

// One segment of a text.
void strip_segment(std::string_view segment, std::string* out) {
  bool unended = false;
  size_t at = 0;
  while (at < segment.size()) {
    const size_t plain = find_dirty(segment, at);
    out->append(segment.substr(at, plain - at));
    if (plain == segment.size()) return;
    at = segment[plain] == '\0' ? plain + 1 : end_of_escape(segment, plain, &unended);
  }
}

void strip_by_segment(std::string_view text, size_t longest_segment, std::string* out) {
  while (!text.empty()) {
    const char* const end = find_separator(text.data(), text.data() + text.size());
    const auto length = static_cast<size_t>(end - text.data());
    strip_segment(text.substr(0, std::min(length, longest_segment)), out);
    if (length == text.size()) return;
    out->push_back(*end);
    text.remove_prefix(length + 1);
  }
}

// Every window of that length holds a separator, or the end of the text.
bool all_segments_within(std::string_view text, size_t longest_segment) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (static_cast<size_t>(end - at) > longest_segment) {
    const char* const next = segment_start(at, at + longest_segment + 1);
    if (next == at) return false;
    at = next;
  }
  return true;
}

// Colours in bulk; a segment that holds anything else by itself.
void strip_in_bulk(std::string_view text, std::string* out) {
  constexpr size_t kSlack = 64;
  std::string by_hand;
  size_t length = 0;
  out->resize(text.size() + kSlack);
  size_t at = 0;
  while (at < text.size()) {
    size_t written = 0;
    at += strip_colours_avx512(text.substr(at), out->data() + length, &written);
    length += written;
    if (at == text.size()) break;
    // text[at] is an escape, everything before it in its segment is done: the rest of the segment
    // is stripped as if it were one.
    const char* const end = find_separator(text.data() + at, text.data() + text.size());
    const auto rest = static_cast<size_t>(end - text.data()) - at;
    by_hand.clear();
    strip_segment(text.substr(at, rest), &by_hand);
    std::copy(by_hand.begin(), by_hand.end(), out->begin() + static_cast<ptrdiff_t>(length));
    length += by_hand.size();
    at += rest;
  }
  out->resize(length);
}

}  // namespace

bool holds_dirty(std::string_view text) { return find_dirty(text, 0) != text.size(); }

void strip_escapes(std::string_view segments, size_t longest_segment, std::string* out, Simd simd) {
  if (simd == Simd::avx512 && all_segments_within(segments, longest_segment)) {
    strip_in_bulk(segments, out);
  } else {
    out->clear();
    strip_by_segment(segments, longest_segment, out);
  }
}

}  // namespace ezpz::evidence
