// The words of an enumeration as one table in its order, for printing and for reading back.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace ezpz {

template <class Enum, size_t N>
bool parse_word(const std::array<std::string_view, N>& table, std::string_view word, Enum* out) {
  for (size_t i = 0; i < N; ++i) {
    if (word != table[i]) continue;
    *out = static_cast<Enum>(i);
    return true;
  }
  return false;
}

}  // namespace ezpz
