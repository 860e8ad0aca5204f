// Weights of a Hugging Face folder, or adapters of a PEFT one, read straight into this rank's
// parts. C++17.
#pragma once

#include <string>

#include "base/result.h"
#include "train/loop/options.h"
#include "train/parallel/sharded.h"

namespace ezpz::train {

// The units must be those of the folder's own shape.
Status load_weights(const std::string& model_dir, Sharded* units);

// The adapters must be of options' rank, alpha and targets.
Status load_adapter(const TrainOptions&, const std::string& adapter_dir, Sharded* adapters);

}  // namespace ezpz::train
