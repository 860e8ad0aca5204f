// What a run leaves for others, made from its last checkpoint by one rank, whatever sharding wrote
// it. Readable as C++17.
#pragma once

#include <string>

#include "base/result.h"
#include "train/loop/options.h"
#include "train/weights/hf_config.h"

namespace ezpz::train {

// The model as Hugging Face describes it.
Result<HfConfig> hf_config_of(const TrainOptions&);

// The adapters in PEFT's layout: adapter_config.json, adapter_model.safetensors.
Status export_adapter(const TrainOptions&, const std::string& checkpoint, const std::string& dir);

// The whole weights as a Hugging Face folder; adapters are merged in. dir must not exist, or be
// empty.
Status export_model(const TrainOptions&, const std::string& checkpoint, const std::string& dir);

}  // namespace ezpz::train
