#include "evidence/escapes.h"

#include <cstddef>

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

}  // namespace

void strip_escapes(std::string_view line, std::string* out) {
  out->clear();
  bool unended = false;
  size_t at = 0;
  while (at < line.size()) {
    size_t plain = at;
    while (plain < line.size() && !is_dirty(line[plain])) ++plain;
    out->append(line.substr(at, plain - at));
    if (plain == line.size()) return;
    at = line[plain] == '\0' ? plain + 1 : end_of_escape(line, plain, &unended);
  }
}

}  // namespace ezpz::evidence
