#include "evidence/prefilter.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/text.h"

namespace ezpz::evidence {

Prefilter::Edge Prefilter::edge(std::string_view folded) {
  std::array<char, sizeof(uint64_t)> bytes{};
  std::array<char, sizeof(uint64_t)> bits{};
  for (size_t i = 0; i < std::min(folded.size(), bytes.size()); ++i) {
    bytes[i] = folded[i];
    if (folded[i] >= 'a' && folded[i] <= 'z') bits[i] = 'a' - 'A';
  }
  return {load8(bytes.data()), load8(bits.data())};
}

Prefilter::Prefilter(const std::vector<std::string>& literals, Simd simd) : simd_(simd) {
  std::vector<std::string> folded;
  for (const std::string& literal : literals) {
    assert(literal.size() >= kWindow);
    folded.push_back(lower(literal));
    longest_ = std::max(longest_, literal.size());
  }
  const std::vector<size_t> places = choose_windows(folded);
  const auto window = [&](size_t literal) {
    return fold_window(window_at(folded[literal].data() + places[literal]));
  };
  std::vector<size_t> order(folded.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(window(a), a) < std::pair(window(b), b); });
  std::vector<uint32_t> windows;
  for (const size_t i : order) {
    windows.push_back(window(i));
    const std::string& text = folded[i];
    const size_t reach = text.size() < sizeof(uint64_t) ? kWindow : sizeof(uint64_t);
    literals_.push_back(
        {edge(text.substr(0, reach)), edge(text.substr(text.size() - reach)), text, places[i], i});
  }
  fill_slots(windows);
  if (simd_ == Simd::avx512) {
    filter_.hashed = hash_tables(std::move(windows));
  } else {
    filter_.nibbles = nibble_tables(std::move(windows));
  }
}

void Prefilter::fill_slots(const std::vector<uint32_t>& windows) {
  slots_.resize(std::bit_ceil(2 * windows.size() + 2));
  slot_shift_ = static_cast<unsigned>(32 - std::countr_zero(slots_.size()));
  for (size_t i = 0; i < windows.size();) {
    size_t end = i;
    while (end < windows.size() && windows[end] == windows[i]) ++end;
    filter_.windows.add(windows[i]);
    size_t at = (windows[i] * WindowSet::kFactor) >> slot_shift_;
    while (slots_[at].count != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {windows[i], static_cast<uint16_t>(i), static_cast<uint16_t>(end - i)};
    i = end;
  }
}

size_t Prefilter::next_strip(std::string_view text, size_t* at, Positions* candidates) const {
  const char* const begin = text.data() + *at;
  const size_t left = text.size() - *at;
  if (left >= kSimdReach) {
    const size_t room = left - (kSimdReach - kSimdBlock);
    const size_t length = std::min(kStrip, room / kSimdBlock * kSimdBlock);
    *at += length;
    return find_candidates(simd_, filter_, begin, length, candidates->data());
  }
  // The rest, padded with a byte that no literal holds.
  std::array<char, kSimdBlock + kSimdReach> padded;
  padded.fill('\n');
  std::memcpy(padded.data(), begin, left);
  *at += left;
  const size_t length = left > kSimdBlock ? 2 * kSimdBlock : kSimdBlock;
  const size_t found = find_candidates(simd_, filter_, padded.data(), length, candidates->data());
  const auto* const end = std::upper_bound(candidates->data(), candidates->data() + found,
                                           static_cast<uint16_t>(left - kWindow));
  return static_cast<size_t>(end - candidates->data());
}

}  // namespace ezpz::evidence
