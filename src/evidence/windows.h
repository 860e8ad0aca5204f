// Which four bytes of each literal the prefilter looks for. Rare ones, so that a healthy line is
// passed over; and ones that several literals share, because the filter lets the more through the
// more different windows it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ezpz::evidence {

constexpr size_t kWindow = 4;  // no literal may be shorter
// A window that passes the filter costs a look at each of its literals.
constexpr size_t kMostLiteralsPerWindow = 16;

inline uint32_t window_at(const char* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}
// Letters in one case. Other bytes may fall together too: windows are only the first look.
inline uint32_t fold_window(uint32_t word) { return word | 0x20202020U; }

// Where in each literal (in lower case) its window is. Depends on the literals only.
std::vector<size_t> choose_windows(const std::vector<std::string>& literals);

}  // namespace ezpz::evidence
