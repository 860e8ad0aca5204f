// A whole run of this rank, from the first banner to the summary. Readable as C++17.
#pragma once

#include "train/loop/options.h"
#include "train/loop/place.h"

namespace ezpz::train {

// The process's exit code.
int train(const TrainOptions&, const Place&);

}  // namespace ezpz::train
