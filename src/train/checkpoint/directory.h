// The names within a checkpoint root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/disk.h"
#include "train/checkpoint/manifest.h"

namespace ezpz::train {

std::string path_in(const std::string& dir, const std::string& name);
std::string step_name(int64_t step);  // "step-00000120"
// The step of exactly such a name.
std::optional<int64_t> parse_step_name(const std::string& name);
std::string shard_name(int rank);        // "shard-00003.bin"
std::string description_name(int rank);  // "shard-00003.json"

std::vector<std::string> list_names(const std::string& dir);  // sorted, without . and ..

// The manifest of a directory, its checksum right and every file there with its size. Does not read
// the files.
Result<Manifest> read_manifest(const std::string& dir);

// Removes a directory of ours: the files that we write, then the directory; anything else in it
// stays, and so does the directory then. True when it is gone.
bool remove_checkpoint(const std::string& dir, Disk& disk);

}  // namespace ezpz::train
