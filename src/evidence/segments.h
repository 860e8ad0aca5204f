// The segments (lines.h) of bytes that arrive in arbitrary chunks, with their line numbers: for
// passes that look at every line, as the stream (stream.h) does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evidence/lines.h"
#include "evidence/stream.h"

namespace ezpz::evidence {

class Segments {
 public:
  // Calls look(segment, line) for each segment that ends in bytes; of one longer than kMaxLine it
  // gets the first kMaxLine bytes.
  template <class Look>
  void feed(std::string_view bytes, Look&& look) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at != end) {
      const char* const separator = find_separator(at, end);
      const std::string_view part(at, static_cast<size_t>(separator - at));
      if (separator == end) {
        keep(part);
        return;
      }
      if (carry_.empty()) {
        look(part.substr(0, kMaxLine), line_);
      } else {
        keep(part);
        look(std::string_view(carry_), line_);
        carry_.clear();
      }
      if (*separator == '\n') ++line_;
      at = separator + 1;
    }
  }

  // The bytes have ended: an unfinished last segment is one, too.
  template <class Look>
  void finish(Look&& look) {
    if (!carry_.empty()) look(std::string_view(carry_), line_);
    carry_.clear();
  }

 private:
  void keep(std::string_view part) { carry_.append(part.substr(0, kMaxLine - carry_.size())); }

  std::string carry_;
  int64_t line_ = 1;
};

}  // namespace ezpz::evidence
