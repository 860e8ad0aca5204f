// Random numbers by counter: number i of a stream does not depend on who asks, so a shard, a tensor
// parallel slice and the whole model hold the same values. Readable as C++17.
#pragma once

#include <cstdint>
#include <string_view>

namespace ezpz::train {

// A stream for a name (a parameter's, a data set's) under a seed.
uint64_t stream_key(uint64_t seed, std::string_view name);
// 64 random bits: number i of the stream.
uint64_t random_bits(uint64_t key, uint64_t i);
// out[j] = number first + j, normally distributed around 0.
void normal_fill(float* out, int64_t n, uint64_t key, uint64_t first, float deviation);

}  // namespace ezpz::train
