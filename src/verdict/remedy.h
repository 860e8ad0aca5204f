// What a person can try, by kind of failure and by what the evidence said.
#pragma once

#include <string>

#include "verdict/attempt.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {

// The grammar's advice for the evidence the verdict rests on, else words of our own. Empty when
// there is nothing useful to say, and for verdicts that convict: the swap is the remedy.
std::string remedy_for(const AttemptRecord&, const Verdict&, const RemedyOf&);

}  // namespace ezpz::verdict
