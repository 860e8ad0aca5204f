// One log, several runs: a requeued job, workers that torchrun restarted, a script's second try.
// What ended an earlier run is history once a later one trained on or ended well; the verdict is
// the last run's.
#pragma once

#include "verdict/attempt.h"

namespace ezpz::verdict {

// The last line of the earlier runs; 0 when there is none, or none that is history yet.
int64_t earlier_runs_end(const AttemptRecord&);

// The same record, in which what an earlier run's output says blames nobody. Facts keep their
// places.
AttemptRecord last_run_of(AttemptRecord, int64_t earlier_runs_end);

}  // namespace ezpz::verdict
