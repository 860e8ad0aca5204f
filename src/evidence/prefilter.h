// Finds which of several hundred literals occur in a text, at memory speed: only lines in which one
// does are worth a regular expression.
//
// Each literal is represented by four of its bytes (windows.h). A vector filter names the positions
// where one of these may be (prefilter_simd.h); a hash of the four bytes then names the literals to
// compare.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/prefilter_simd.h"
#include "evidence/windows.h"

namespace ezpz::evidence {

class Prefilter {
 public:
  static constexpr size_t kWindow = evidence::kWindow;  // no literal may be shorter

  // Literals are compared without regard to the case of ASCII letters.
  explicit Prefilter(const std::vector<std::string>& literals, Simd simd = best_simd());

  // Calls hit(position, literal) for each occurrence, roughly in the order of the text (within a
  // literal's length).
  template <class Hit>
  void scan(std::string_view text, Hit&& hit) const;

  [[nodiscard]] size_t longest() const { return longest_; }

 private:
  // The first and the last eight bytes (four, of a literal shorter than eight), for one comparison
  // each; `case_bits` are set where a letter is.
  struct Edge {
    uint64_t bytes = 0;
    uint64_t case_bits = 0;
    [[nodiscard]] bool equals(uint64_t text) const { return (text | case_bits) == bytes; }
  };
  struct Literal {
    Edge head;
    Edge tail;
    std::string folded;
    size_t window = 0;  // where in the literal its window is
    size_t number = 0;
  };
  // The literals of one window.
  struct Slot {
    uint32_t window = 0;
    uint16_t first = 0;
    uint16_t count = 0;  // 0: the slot is free
  };

  static constexpr size_t kStrip = 4096;  // small enough for the first-level cache
  using Positions = std::array<uint16_t, kStrip + kSimdBlock>;

  static Edge edge(std::string_view folded);
  static uint64_t load8(const char* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  static bool occurs(const char* text, const Literal& literal);
  [[nodiscard]] const Slot& slot_of(uint32_t folded) const {
    size_t i = (folded * WindowSet::kFactor) >> slot_shift_;
    while (slots_[i].count != 0 && slots_[i].window != folded) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }
  void fill_slots(const std::vector<uint32_t>& windows);
  // Candidates in the part of text that begins at *at, relative to it; moves *at to the next part.
  size_t next_strip(std::string_view text, size_t* at, Positions* candidates) const;

  Simd simd_;
  Filter filter_;
  std::vector<Literal> literals_;  // by window
  std::vector<Slot> slots_;        // a power of two, at most half of them taken
  unsigned slot_shift_ = 0;
  size_t longest_ = 0;
};

inline bool Prefilter::occurs(const char* text, const Literal& literal) {
  const size_t length = literal.folded.size();
  if (length < sizeof(uint64_t)) {
    return literal.head.equals(window_at(text)) &&
           literal.tail.equals(window_at(text + length - kWindow));
  }
  if (!literal.head.equals(load8(text))) return false;
  if (!literal.tail.equals(load8(text + length - sizeof(uint64_t)))) return false;
  for (size_t i = sizeof(uint64_t); i + sizeof(uint64_t) < length; ++i) {
    const char c = text[i];
    if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != literal.folded[i]) return false;
  }
  return true;
}

template <class Hit>
void Prefilter::scan(std::string_view text, Hit&& hit) const {
  Positions candidates;
  for (size_t at = 0; text.size() - at >= kWindow;) {
    const size_t strip = at;
    const size_t found = next_strip(text, &at, &candidates);
    for (size_t i = 0; i < found; ++i) {
      const size_t where = strip + candidates[i];
      const Slot& slot = slot_of(fold_window(window_at(text.data() + where)));
      for (size_t n = slot.first; n < size_t{slot.first} + slot.count; ++n) {
        const Literal& literal = literals_[n];
        if (where < literal.window) continue;
        const size_t start = where - literal.window;
        if (text.size() - start < literal.folded.size()) continue;
        if (occurs(text.data() + start, literal)) hit(start, static_cast<int>(literal.number));
      }
    }
  }
}

}  // namespace ezpz::evidence
