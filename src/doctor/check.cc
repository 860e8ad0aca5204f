#include "doctor/check.h"

#include <algorithm>

namespace ezpz::doctor {

std::string_view to_string(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::unknown:
      return "unknown";
    case Health::warning:
      return "warning";
    case Health::error:
      return "error";
  }
  return "unknown";
}

Health worst(const std::vector<Finding>& findings) {
  Health health = Health::ok;
  for (const Finding& finding : findings) health = std::max(health, finding.health);
  return health;
}

}  // namespace ezpz::doctor
