#include "evidence/prefilter.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace ezpz::evidence {
namespace {

char other_case(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c; }

// Roughly how many in a thousand bytes of a training log are this one: only the choice of windows
// and buckets depends on it, never a result.
double frequency(unsigned char byte) {
  static const std::array<double, 256> table = [] {
    std::array<double, 256> share{};
    share.fill(0.05);
    for (int c = 0x20; c < 0x7f; ++c) share[static_cast<size_t>(c)] = 1;
    constexpr std::string_view kByFrequency = "etaoinsrlhdcumfpgwybvkxjqz";
    for (size_t i = 0; i < kByFrequency.size(); ++i) {
      share[static_cast<unsigned char>(kByFrequency[i])] = 50.0 / static_cast<double>(i + 1);
    }
    for (char c = '0'; c <= '9'; ++c) share[static_cast<unsigned char>(c)] = 25;
    share[' '] = 120;
    share['.'] = share[':'] = share['='] = share['-'] = share['_'] = share['/'] = share[','] = 15;
    share['\n'] = 12;
    return share;
  }();
  return table[byte];
}

// The bytes a bucket lets through at each place of the window, as nibble sets.
struct Bucket {
  std::array<uint16_t, Prefilter::kWindow> low{};
  std::array<uint16_t, Prefilter::kWindow> high{};

  void accept(size_t place, char c) {
    const auto byte = static_cast<unsigned char>(c);
    low[place] = static_cast<uint16_t>(low[place] | 1U << (byte & 15U));
    high[place] = static_cast<uint16_t>(high[place] | 1U << (byte >> 4U));
  }
  void accept(std::string_view window) {
    for (size_t i = 0; i < Prefilter::kWindow; ++i) {
      accept(i, window[i]);
      accept(i, other_case(window[i]));
    }
  }
  // Expected share of positions that pass.
  [[nodiscard]] double cost() const {
    double product = 1;
    for (size_t i = 0; i < Prefilter::kWindow; ++i) {
      double share = 0;
      for (unsigned byte = 0; byte < 256; ++byte) {
        const bool passes =
            (low[i] >> (byte & 15U) & 1U) != 0 && (high[i] >> (byte >> 4U) & 1U) != 0;
        if (passes) share += frequency(static_cast<unsigned char>(byte));
      }
      product *= share / 1000;
    }
    return product;
  }
};

size_t rarest_window(std::string_view folded) {
  size_t best = 0;
  double best_cost = std::numeric_limits<double>::max();
  for (size_t at = 0; at + Prefilter::kWindow <= folded.size(); ++at) {
    Bucket alone;
    alone.accept(folded.substr(at, Prefilter::kWindow));
    if (const double cost = alone.cost(); cost < best_cost) {
      best = at;
      best_cost = cost;
    }
  }
  return best;
}

constexpr size_t kBuckets = 7;  // of literals; the eighth holds the dirty bytes

// Greedy: each window goes where it lets the fewest further positions through.
std::array<Bucket, kBuckets> fill_buckets(std::vector<std::string> windows) {
  std::sort(windows.begin(), windows.end());
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  std::array<Bucket, kBuckets> buckets;
  for (const std::string& window : windows) {
    Bucket* best = nullptr;
    double best_increase = std::numeric_limits<double>::max();
    for (Bucket& bucket : buckets) {
      Bucket with = bucket;
      with.accept(window);
      const double increase = with.cost() - bucket.cost();
      if (increase < best_increase) {
        best = &bucket;
        best_increase = increase;
      }
    }
    best->accept(window);
  }
  return buckets;
}

NibbleTables nibble_tables(const std::array<Bucket, kBuckets>& buckets) {
  NibbleTables tables;
  const auto set = [](uint8_t* byte, size_t bit) {
    *byte = static_cast<uint8_t>(*byte | 1U << bit);
  };
  for (size_t place = 0; place < Prefilter::kWindow; ++place) {
    for (size_t nibble = 0; nibble < 16; ++nibble) {
      for (size_t b = 0; b < kBuckets; ++b) {
        if ((buckets[b].low[place] >> nibble & 1U) != 0) set(&tables.low[place][nibble], b);
        if ((buckets[b].high[place] >> nibble & 1U) != 0) set(&tables.high[place][nibble], b);
      }
      // ESC is 0x1b, NUL is 0x00; what follows a dirty byte does not matter.
      if (place > 0 || nibble == 0x0 || nibble == 0xb) set(&tables.low[place][nibble], kBuckets);
      if (place > 0 || nibble <= 0x1) set(&tables.high[place][nibble], kBuckets);
    }
  }
  return tables;
}

}  // namespace

Prefilter::Prefilter(std::vector<std::string> literals, Simd simd) : simd_(simd), literals_(1) {
  std::vector<std::string> windows;
  for (std::string& literal : literals) {
    assert(literal.size() >= kWindow);
    std::transform(literal.begin(), literal.end(), literal.begin(), fold_letter);
    const size_t window = rarest_window(literal);
    windows.push_back(literal.substr(window, kWindow));
    uint16_t& first = first_of_slot_[slot(fold(load(literal.data() + window)))];
    const uint16_t next = first;
    first = static_cast<uint16_t>(literals_.size());
    literals_.push_back(Literal{std::move(literal), window, next});
  }
  tables_ = nibble_tables(fill_buckets(std::move(windows)));
}

}  // namespace ezpz::evidence
