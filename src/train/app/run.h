// A whole run of this rank, from the first banner to the summary. Readable as C++17.
#pragma once

#include "train/loop/options.h"
#include "train/loop/place.h"

namespace ezpz::train {

// Not sysexits' own meanings, but out of the way of shells, launchers and signals.
constexpr int kStoppedEarly = 75;  // asked to stop (SIGTERM, SIGINT), and did after a whole step
constexpr int kPeersLost = 76;     // a peer is gone, did not come, or did not answer in time

constexpr int kCannotSave = 77;  // checkpoints failed again and again

// The process's exit code: 0 when all steps are done.
int train(const TrainOptions&, const Place&);

}  // namespace ezpz::train
