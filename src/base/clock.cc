#include "base/clock.h"

#include <fmt/core.h>
#include <time.h>

#include <cmath>

namespace ezpz {
namespace {

double read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

double monotonic_s() { return read_clock(CLOCK_MONOTONIC); }
double wall_s() { return read_clock(CLOCK_REALTIME); }

std::string iso8601(double wall_s) {
  const auto ms_total = static_cast<int64_t>(std::floor(wall_s * 1000));
  const time_t seconds = static_cast<time_t>(ms_total / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     ms_total % 1000);
}

std::string human_duration(double seconds) {
  if (seconds < 0) return "-" + human_duration(-seconds);
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
}

}  // namespace ezpz
