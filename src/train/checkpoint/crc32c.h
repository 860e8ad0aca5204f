// CRC-32C (Castagnoli), with the processor's own instruction where it has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ezpz::train {

// crc: of what came before, 0 to begin with.
uint32_t crc32c(uint32_t crc, const void* data, size_t bytes);

}  // namespace ezpz::train
