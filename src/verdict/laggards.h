// Which ranks the others waited for, when a collective timed out.
#pragma once

#include <vector>

#include "verdict/case_file.h"

namespace ezpz::verdict {

// Ascending; empty when nothing tells. Two ways to know:
//  - somebody says that ranks did not arrive (PyTorch's monitoredBarrier): event unreachable, with
//    ranks;
//  - the watchdogs of several ranks tell how far each had come (WorkNCCL(SeqNum=...)): those with
//  the
//    lowest number are behind, as long as they are the smaller part. All at one number tells
//    nothing: whoever is missing has printed no line.
std::vector<int> laggards(const CaseFile&);

}  // namespace ezpz::verdict
