// The two clocks. Durations come from the monotonic one, records carry the wall clock.
#pragma once

#include <string>

namespace ezpz {

double monotonic_s();
double wall_s();
// "2026-11-29T16:03:07.123Z"
std::string iso8601(double wall_s);
// "1h 02m", "3m 05s", "12.3 s", "45 ms": for people.
std::string human_duration(double seconds);

}  // namespace ezpz
