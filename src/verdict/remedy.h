// What a person can try, by kind of failure and by what the evidence said.
#pragma once

#include <string>

#include "verdict/attempt.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {

// Empty when there is nothing useful to say.
std::string remedy_for(const AttemptRecord&, const Verdict&);

}  // namespace ezpz::verdict
