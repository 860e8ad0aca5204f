// One look over a block of bytes before anything else: most blocks hold no escape, and then need
// not be stripped; and their lines are counted on the way.
#pragma once

#include <cstdint>
#include <string_view>

#include "evidence/prefilter_simd.h"

namespace ezpz::evidence {

struct Survey {
  int64_t newlines = 0;
  bool dirty = false;  // an ESC or NUL somewhere (escapes.h)
};
Survey survey(std::string_view text, Simd simd = best_simd());

}  // namespace ezpz::evidence
