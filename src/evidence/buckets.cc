#include "evidence/buckets.h"

#include <algorithm>
#include <bit>

#include "evidence/windows.h"

namespace ezpz::evidence {
namespace {

uint8_t byte_of(uint32_t window, size_t place) {
  std::array<uint8_t, kWindow> bytes;
  std::memcpy(bytes.data(), &window, kWindow);
  return bytes[place];
}

uint8_t times(const BitRows& rows, uint8_t byte) {
  unsigned product = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    product |= (static_cast<unsigned>(std::popcount<uint8_t>(byte & rows[i])) & 1U) << i;
  }
  return static_cast<uint8_t>(product);
}

// The three hashes: of the first two bytes, of the last two, and of both.
std::array<uint8_t, 3> hashes(uint32_t window) {
  const auto pair = [&](size_t first) {
    return static_cast<uint8_t>(times(kFirstOfPair, byte_of(window, first)) ^
                                times(kSecondOfPair, byte_of(window, first + 1)));
  };
  const uint8_t front = pair(0);
  const uint8_t back = pair(2);
  return {front, back, static_cast<uint8_t>(front + back)};
}

void add(uint8_t* entry, size_t bucket) { *entry = static_cast<uint8_t>(*entry | 1U << bucket); }

// Calls put(window, bucket) for each window, neighbours in the given order together: what has
// something in common makes fewer entries in one bucket than in several.
template <class Less, class Put>
void share_out(std::vector<uint32_t>* windows, size_t buckets, Less less, Put put) {
  std::sort(windows->begin(), windows->end());
  windows->erase(std::unique(windows->begin(), windows->end()), windows->end());
  std::stable_sort(windows->begin(), windows->end(), less);
  for (size_t i = 0; i < windows->size(); ++i) put((*windows)[i], i * buckets / windows->size());
}

}  // namespace

std::array<NibbleTables, 2> nibble_tables(std::vector<uint32_t> windows) {
  std::array<NibbleTables, 2> tables;
  const auto less = [](uint32_t a, uint32_t b) { return byte_of(a, 0) < byte_of(b, 0); };
  share_out(&windows, 2 * kBuckets, less, [&](uint32_t window, size_t bucket) {
    NibbleTables& table = tables[bucket / kBuckets];
    for (size_t place = 0; place < kWindow; ++place) {
      add(&table.low[place][byte_of(window, place) & 15U], bucket % kBuckets);
      add(&table.high[place][byte_of(window, place) >> 4U], bucket % kBuckets);
    }
  });
  return tables;
}

HashTables hash_tables(std::vector<uint32_t> windows) {
  HashTables tables;
  const auto less = [](uint32_t a, uint32_t b) { return hashes(a)[0] % 64 < hashes(b)[0] % 64; };
  share_out(&windows, kBuckets, less, [&](uint32_t window, size_t bucket) {
    const std::array<uint8_t, 3> hashed = hashes(window);
    for (size_t i = 0; i < hashed.size(); ++i) {
      add(&tables.accepts[2 * i][hashed[i] & 63U], bucket);
      add(&tables.accepts[2 * i + 1][hashed[i] >> 2U], bucket);
    }
  });
  return tables;
}

}  // namespace ezpz::evidence
