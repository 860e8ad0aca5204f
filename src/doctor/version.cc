#include "doctor/version.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr size_t kMostNumbers = 8;

}  // namespace

std::optional<std::vector<long>> version_numbers(std::string_view text) {
  if (!text.empty() && (text[0] == 'v' || text[0] == 'V')) text.remove_prefix(1);
  std::vector<long> numbers;
  while (numbers.size() < kMostNumbers) {
    size_t digits = 0;
    while (digits < text.size() && isdigit(static_cast<unsigned char>(text[digits])) != 0) ++digits;
    const std::optional<long> number = parse_int(text.substr(0, digits));
    if (!number) break;
    numbers.push_back(*number);
    text.remove_prefix(digits);
    if (text.empty() || text[0] != '.') break;
    text.remove_prefix(1);
  }
  if (numbers.empty()) return std::nullopt;
  return numbers;
}

int compare_versions(const std::vector<long>& a, const std::vector<long>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const long left = i < a.size() ? a[i] : 0;
    const long right = i < b.size() ? b[i] : 0;
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

bool fits(const std::vector<long>& version, const std::vector<VersionBound>& bounds) {
  return std::all_of(bounds.begin(), bounds.end(), [&version](const VersionBound& bound) {
    const int order = compare_versions(version, bound.version);
    switch (bound.kind) {
      case VersionBound::Kind::below:
        return order < 0;
      case VersionBound::Kind::at_most:
        return order <= 0;
      case VersionBound::Kind::equal:
        return order == 0;
      case VersionBound::Kind::at_least:
        return order >= 0;
      case VersionBound::Kind::above:
        return order > 0;
    }
    return false;
  });
}

Result<std::vector<VersionBound>> parse_version_bounds(std::string_view text) {
  using Kind = VersionBound::Kind;
  constexpr std::pair<std::string_view, Kind> operators[] = {
      // Longer ones first.
      {"<=", Kind::at_most}, {">=", Kind::at_least}, {"==", Kind::equal},
      {"<", Kind::below},    {">", Kind::above},
  };
  std::vector<VersionBound> bounds;
  for (const std::string& part : split(text, ',')) {
    std::string_view rest = trim(part);
    const auto* const found =
        std::find_if(std::begin(operators), std::end(operators),
                     [rest](const auto& entry) { return rest.starts_with(entry.first); });
    if (found == std::end(operators)) {
      return Error{"a version range needs < <= == >= or > before each version",
                   "\"" + printable(text) + "\"", "such as \">=2.8, <2.13\""};
    }
    rest = trim(rest.substr(found->first.size()));
    const bool digits_only = rest.find_first_not_of("0123456789.") == std::string_view::npos;
    const auto version = digits_only ? version_numbers(rest) : std::nullopt;
    if (!version || rest.back() == '.') {
      return Error{"not a version", "\"" + printable(rest) + "\"",
                   "numbers and dots, as in 2.13.0"};
    }
    bounds.push_back({found->second, *version});
  }
  return bounds;
}

}  // namespace ezpz::doctor
