// What earlier attempts say about this one: progress, repetition, seats. Pure, and without policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verdict/policy.h"

namespace ezpz::verdict {

// Did past attempt number i (0-based) get further than those before it?
bool past_made_progress(const std::vector<PastAttempt>& history, size_t i);

// Was a host taken out on evidence (anything but a blind guess)?
bool convicted_on_evidence(const PastAttempt&);

// Both unknown, or apart by no more than the steps between two progress lines: the last line of a
// dying program may be lost.
bool near_same_step(const evidence::Progress& a, const evidence::Progress& b);

// Does one set of seats contain the other? Never when either is empty.
bool same_seats(const std::vector<int>& a, const std::vector<int>& b);

}  // namespace ezpz::verdict
