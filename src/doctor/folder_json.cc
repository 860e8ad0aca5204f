#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/json.h"
#include "doctor/look_folder.h"

namespace ezpz::doctor {
namespace {

Json to_json(const LustreTarget& target) {
  return {{"name", target.name},     {"index", target.index},       {"ost", target.is_ost},
          {"active", target.active}, {"total", target.total_bytes}, {"free", target.free_bytes}};
}

template <class T>
T value_of(const Json& json, const char* key, T otherwise) {
  const auto found = json.find(key);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->template get<T>() : otherwise;
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->template get<T>() : otherwise;
  } else {
    return found->is_number() ? found->template get<T>() : otherwise;
  }
}

}  // namespace

std::string format_folder(const FolderSight& sight) {
  Json json{{"path", sight.path},
            {"existing", sight.existing},
            {"trouble", sight.trouble},
            {"is_folder", sight.is_folder},
            {"writable", sight.writable},
            {"write_error", sight.write_error},
            {"free_bytes", sight.free_bytes},
            {"total_bytes", sight.total_bytes},
            {"free_files", sight.free_files},
            {"total_files", sight.total_files},
            {"file_system", sight.file_system},
            {"in_memory", sight.in_memory},
            {"lustre_trouble", sight.lustre_trouble}};
  if (sight.lustre) {
    Json& targets = json["targets"] = Json::array();
    for (const LustreTarget& target : sight.lustre->targets) targets.push_back(to_json(target));
    if (sight.lustre->stripes) {
      json["stripes"] = {{"count", sight.lustre->stripes->count},
                         {"offset", sight.lustre->stripes->offset},
                         {"pool", sight.lustre->stripes->pool}};
    }
  }
  // ASCII, as write_wire() wants it.
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<FolderSight> parse_folder(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("path") || !json.contains("existing")) {
    return std::nullopt;
  }
  FolderSight sight;
  sight.path = value_of(json, "path", std::string());
  sight.existing = value_of(json, "existing", std::string());
  sight.trouble = value_of(json, "trouble", std::string());
  sight.is_folder = value_of(json, "is_folder", true);
  sight.writable = value_of(json, "writable", false);
  sight.write_error = value_of(json, "write_error", std::string());
  sight.free_bytes = value_of(json, "free_bytes", 0.0);
  sight.total_bytes = value_of(json, "total_bytes", 0.0);
  sight.free_files = value_of(json, "free_files", 0.0);
  sight.total_files = value_of(json, "total_files", 0.0);
  sight.file_system = value_of(json, "file_system", std::string());
  sight.in_memory = value_of(json, "in_memory", false);
  sight.lustre_trouble = value_of(json, "lustre_trouble", std::string());
  const auto targets = json.find("targets");
  if (targets != json.end() && targets->is_array()) {
    sight.lustre.emplace();
    for (const Json& item : *targets) {
      LustreTarget target;
      target.name = value_of(item, "name", std::string());
      target.index = value_of(item, "index", -1);
      target.is_ost = value_of(item, "ost", false);
      target.active = value_of(item, "active", false);
      target.total_bytes = value_of(item, "total", 0.0);
      target.free_bytes = value_of(item, "free", 0.0);
      sight.lustre->targets.push_back(std::move(target));
    }
    const auto stripes = json.find("stripes");
    if (stripes != json.end() && stripes->is_object()) {
      sight.lustre->stripes =
          LustreStripes{value_of(*stripes, "count", 0), value_of(*stripes, "offset", -1),
                        value_of(*stripes, "pool", std::string())};
    }
  }
  return sight;
}

}  // namespace ezpz::doctor
