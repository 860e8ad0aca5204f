// What the first genuine cause says of kind and host: rule 6 of attribution.cc.
#pragma once

#include "verdict/finding.h"
#include "verdict/first_cause.h"

namespace ezpz::verdict {

Finding judge(const CaseFile&, const Cause&);

}  // namespace ezpz::verdict
