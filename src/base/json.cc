#include "base/json.h"

#include <nlohmann/json.hpp>

namespace ezpz {

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string dump_pretty(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ezpz
