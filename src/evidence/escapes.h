// Terminal escapes and NUL bytes taken out of a line before it is matched (never out of the log).
// Colours stand inside tokens: "iter\x1b[0m=\x1b[36m42" must read "iter=42".
#pragma once

#include <string>
#include <string_view>

namespace ezpz::evidence {

// A byte that makes a line worth stripping.
inline bool is_dirty(char c) { return c == '\x1b' || c == '\0'; }

// Removes CSI, OSC (and the other string sequences), two-byte escapes and NUL. A string sequence
// without its end loses only its first two bytes: it must not swallow an error message.
void strip_escapes(std::string_view line, std::string* out);

}  // namespace ezpz::evidence
