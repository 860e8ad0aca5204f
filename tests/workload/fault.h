// Faults a rank does to itself, each recorded before it acts: a test can then tell "handled" from
// "never happened".
#pragma once

#include <cstdint>

#include "workload/options.h"
#include "workload/receipts.h"

namespace toy {

bool is_meant(const Fault&, const Identity&);
// Called once before the rendezvous.
void fault_before_first_step(const Fault&, const Identity&, Receipts&);
// Called in every step before its all-reduce: the step is never finished.
void fault_at_step(const Fault&, const Identity&, int64_t step, Receipts&);

}  // namespace toy
