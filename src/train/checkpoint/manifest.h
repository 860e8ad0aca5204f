// What a checkpoint directory holds, in manifest.json; its checksum is in manifest.crc32c. The
// manifest is written last and counts: files without one are no checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/weights/safetensors.h"

namespace ezpz::train {

// A part of a tensor, told so that both kinds of sharding are exact: the tensor is a matrix (first
// dimension x the rest), tensor parallelism takes a rectangle of it, and fully sharded data
// parallelism takes elements first .. first + count of that rectangle laid out flat.
// A rectangle of zero rows stands for the whole tensor.
struct Part {
  std::string tensor;
  uint64_t first_row = 0;
  uint64_t rows = 0;
  uint64_t first_column = 0;
  uint64_t columns = 0;
  uint64_t first = 0;
  uint64_t count = 0;
};

struct StoredPart : Part {
  uint64_t offset = 0;              // bytes, in its file
  std::vector<uint32_t> checksums;  // CRC-32C of each kChecksumBytes of it
};
constexpr uint64_t kChecksumBytes = 4U << 20U;

struct ShardFile {
  std::string name;
  uint64_t bytes = 0;
  std::vector<StoredPart> parts;
};

struct Manifest {
  int64_t step = 0;
  // Grows with every save in a directory: which one is newest does not depend on steps (a run may
  // have gone back) or clocks.
  uint64_t sequence = 0;
  int world_size = 1;
  std::string state;  // the trainer's own JSON: sampler, rng, configuration, layout
  std::vector<TensorSpec> tensors;
  std::vector<ShardFile> files;

  [[nodiscard]] const TensorSpec* find(std::string_view tensor) const;
};

std::string format_manifest(const Manifest&);
// Checked: every part lies in its tensor and its file.
Result<Manifest> parse_manifest(std::string_view json, const std::string& where);

// One rank's file, as it tells rank 0: manifest.files' element alone.
std::string format_shard_file(const ShardFile&);
Result<ShardFile> parse_shard_file(std::string_view json, const std::string& where);

// Every element of every tensor is in exactly one part.
Status check_coverage(const Manifest&, const std::string& where);

// The rectangle spelled out, and whether the part lies in the tensor.
Status normalize_part(const TensorSpec&, Part*, const std::string& where);

}  // namespace ezpz::train
