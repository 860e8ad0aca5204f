// Asking a scheduler: a question whose answer is that the server could not be reached just now is
// asked again, a few times and within its time limit.
#pragma once

#include <functional>

#include "base/loop.h"
#include "base/process.h"

namespace ezpz::site {

inline constexpr int kMostTries = 3;

// As start_helper() and run_helper() of base/process.h. The trouble says how often it was asked.
void start_question(Loop&, const Argv&, double timeout_s, std::function<void(HelperResult)> done);
HelperResult run_question(Loop&, const Argv&, double timeout_s);

}  // namespace ezpz::site
