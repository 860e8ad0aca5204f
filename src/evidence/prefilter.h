// Finds which of a few hundred literals occur in a text, at memory speed: only lines in which one
// does are worth a regular expression.
//
// A vector filter (AVX2 or SSSE3, chosen at run time; see prefilter_simd.h) looks at four bytes per
// position through nibble tables and lets a small part of the positions through; a hash of the same
// four bytes then names the literals to compare. Without those instructions the hash alone is used.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/escapes.h"
#include "evidence/prefilter_simd.h"

namespace ezpz::evidence {

class Prefilter {
 public:
  static constexpr size_t kWindow = 4;  // no literal may be shorter
  static constexpr int kDirty = -1;     // hit: a byte that hides tokens (escapes.h)

  // Literals are compared without regard to the case of ASCII letters.
  explicit Prefilter(std::vector<std::string> literals, Simd simd = best_simd());

  // Calls hit(position, literal) for each occurrence and hit(position, kDirty) for each dirty byte,
  // roughly in the order of the text (within a literal's length).
  template <class Hit>
  void scan(std::string_view text, Hit&& hit) const;

 private:
  struct Literal {
    std::string folded;
    size_t window = 0;  // where in the literal its rarest four bytes are
    uint16_t next = 0;  // further literal of the same hash; 0: none
  };
  static constexpr size_t kSlots = 4096;

  static uint32_t load(const char* at) {
    uint32_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  static uint32_t fold(uint32_t word) { return word | 0x20202020U; }
  static size_t slot(uint32_t folded) { return (folded * 0x9E3779B1U) >> 20U; }
  static char fold_letter(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  static bool equal_folded(const char* text, std::string_view folded) {
    for (size_t i = 0; i < folded.size(); ++i) {
      if (fold_letter(text[i]) != folded[i]) return false;
    }
    return true;
  }

  template <class Hit>
  void verify(std::string_view text, size_t at, Hit& hit) const;

  Simd simd_;
  NibbleTables tables_;
  std::vector<Literal> literals_;  // [0] is unused, so that 0 can mean none
  std::array<uint16_t, kSlots> first_of_slot_{};
};

template <class Hit>
void Prefilter::verify(std::string_view text, size_t at, Hit& hit) const {
  if (is_dirty(text[at])) {
    hit(at, kDirty);
    return;
  }
  if (at + kWindow > text.size()) return;
  for (uint16_t i = first_of_slot_[slot(fold(load(text.data() + at)))]; i != 0;) {
    const Literal& literal = literals_[i];
    i = literal.next;
    if (at < literal.window) continue;
    const size_t start = at - literal.window;
    if (start + literal.folded.size() > text.size()) continue;
    if (!equal_folded(text.data() + start, literal.folded)) continue;
    hit(start, static_cast<int>(&literal - literals_.data()) - 1);
  }
}

template <class Hit>
void Prefilter::scan(std::string_view text, Hit&& hit) const {
  // Strips small enough for the first-level cache; each vector block reads a little past its end.
  constexpr size_t kStrip = 4096;
  std::array<uint16_t, kStrip> candidates;
  size_t at = 0;
  while (text.size() - at >= kSimdReach && simd_ != Simd::none) {
    const size_t room = text.size() - at - (kSimdReach - kSimdBlock);
    const size_t length = std::min(kStrip, room / kSimdBlock * kSimdBlock);
    const size_t found =
        find_candidates(simd_, tables_, text.data() + at, length, candidates.data());
    for (size_t i = 0; i < found; ++i) verify(text, at + candidates[i], hit);
    at += length;
  }
  if (simd_ != Simd::none && at < text.size()) {
    // The rest, padded with a byte that no literal holds.
    std::array<char, 2 * kSimdReach> padded;
    padded.fill('\n');
    std::memcpy(padded.data(), text.data() + at, text.size() - at);
    const size_t found =
        find_candidates(simd_, tables_, padded.data(), 2 * kSimdBlock, candidates.data());
    for (size_t i = 0; i < found && at + candidates[i] < text.size(); ++i) {
      verify(text, at + candidates[i], hit);
    }
    return;
  }
  for (; at < text.size(); ++at) verify(text, at, hit);
}

}  // namespace ezpz::evidence
