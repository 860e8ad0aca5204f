// JSON for records and answers. The full nlohmann header costs seconds a file: headers include this
// one, sources that build or read JSON include <nlohmann/json.hpp>.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ezpz {

using Json = nlohmann::ordered_json;

// Always valid UTF-8, whatever bytes the strings hold: logs and paths are not UTF-8.
std::string dump(const Json&);
std::string dump_pretty(const Json&);

}  // namespace ezpz
