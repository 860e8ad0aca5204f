// What this rank keeps of each parameter: a run of the elements of its (tensor parallel) rectangle,
// laid out flat. C++17.
#pragma once

#include <cstdint>
#include <vector>

#include "train/parallel/sharded.h"

namespace ezpz::train {

struct OwnPart {
  const Parameter* parameter = nullptr;
  size_t unit = 0;
  int64_t in_shard = 0;  // where it begins in the rank's part of the unit
  int64_t first = 0;     // in the parameter's rectangle
  int64_t count = 0;
};

// Valid as long as the units are.
std::vector<OwnPart> own_parts(Sharded&);

}  // namespace ezpz::train
