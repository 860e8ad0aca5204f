#include "doctor/safe_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace ezpz::doctor {

bool may_be_secret(std::string_view variable) {
  std::string name(variable);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(toupper(c)); });
  for (const char* word : {"TOKEN", "SECRET", "KEY", "PASS", "COOKIE", "CREDENTIAL", "AUTH"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

std::string shown(std::string_view variable, std::string_view value) {
  const std::string name = printable(variable, 80);
  if (may_be_secret(variable)) return name + " (set, not shown)";
  return name + "='" + printable(value, 120) + "'";
}

std::string human_bytes(unsigned long long bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(units)) {
    amount /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.1f} {}", amount, units[unit]);
}

}  // namespace ezpz::doctor
