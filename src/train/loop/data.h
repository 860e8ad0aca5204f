// The samples of a run: which source, and in which order. Readable as C++17.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "train/data/sampler.h"
#include "train/data/source.h"
#include "train/loop/options.h"

namespace ezpz::train {

class StreamSource;

struct Data {
  std::unique_ptr<TokenSource> source;
  Sampler sampler;
  StreamSource* stream = nullptr;  // the source, when it is one that fetches ahead
};

// options.dataset: "random"; a text file; a file or folder of tokens (*.tok); the URL of a stream's
// index. Every token must be in the model's vocabulary. say: lines such as "waiting on the
// network". Ranks that share a folder of tokenized texts may all call it at once.
Result<Data> open_data(const TrainOptions&, const std::function<void(const std::string&)>& say);

}  // namespace ezpz::train
