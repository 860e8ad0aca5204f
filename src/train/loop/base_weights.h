// The weights of a Hugging Face folder, read straight into this rank's parts. C++17.
#pragma once

#include <string>

#include "base/result.h"
#include "train/parallel/sharded.h"

namespace ezpz::train {

// The units must be those of the folder's own shape.
Status load_weights(const std::string& model_dir, Sharded* units);

}  // namespace ezpz::train
