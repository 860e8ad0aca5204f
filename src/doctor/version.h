// Versions of libraries, compared number by number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::doctor {

// {2, 13, 0} of "2.13.0a0+git12" or "v2.13.0"; nothing when it begins with no number.
std::optional<std::vector<long>> version_numbers(std::string_view);

// Negative, 0, positive; what is missing counts as 0 (2.13 is 2.13.0).
int compare_versions(const std::vector<long>&, const std::vector<long>&);

struct VersionBound {
  enum class Kind { below, at_most, equal, at_least, above } kind;
  std::vector<long> version;
};
bool fits(const std::vector<long>& version, const std::vector<VersionBound>&);

// ">=2.8, <2.13": all of them must hold. Every part has an operator: < <= == >= >.
Result<std::vector<VersionBound>> parse_version_bounds(std::string_view);

}  // namespace ezpz::doctor
