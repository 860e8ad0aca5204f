#include "train/weights/strict_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace ezpz::train {
namespace {

constexpr int kMaxDepth = 32;

int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_text = false;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

const StrictJson* member(const StrictJson& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

}  // namespace

Result<StrictJson> parse_strict_json(std::string_view text, const std::string& where) {
  if (depth_of(text) > kMaxDepth) return Error{"JSON nested too deep", where, ""};
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string repeated;
  bool has_repeated = false;
  const auto watch = [&](int /*depth*/, StrictJson::parse_event_t event, StrictJson& parsed) {
    using Event = StrictJson::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end && !keys.empty()) keys.pop_back();
    if (event == Event::key && !keys.empty()) {
      auto name = parsed.get<std::string>();
      if (!keys.back().insert(name).second && !has_repeated) {
        has_repeated = true;
        repeated = std::move(name);
      }
    }
    return true;
  };
  StrictJson json = StrictJson::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Error{"not JSON", where, "is the file whole?"};
  if (has_repeated) return Error{"the key \"" + repeated + "\" stands twice", where, ""};
  return json;
}

std::optional<uint64_t> json_uint(const StrictJson& json, const char* key) {
  const StrictJson* value = member(json, key);
  if (value == nullptr || !value->is_number_unsigned()) return std::nullopt;
  return value->get<uint64_t>();
}

std::optional<double> json_number(const StrictJson& json, const char* key) {
  const StrictJson* value = member(json, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::optional<std::string> json_text(const StrictJson& json, const char* key) {
  const StrictJson* value = member(json, key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

std::optional<bool> json_bool(const StrictJson& json, const char* key) {
  const StrictJson* value = member(json, key);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

}  // namespace ezpz::train
