#include "bench/provenance.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr size_t kMost_bytes = 16U << 20U;
constexpr int kMostCount = 100'000'000;

bool is_regular(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return names;
  while (const dirent* entry = readdir(dir.get())) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_report(const std::string& name) {
  return name.rfind("report", 0) == 0 && name.size() >= 9 && name.substr(name.size() - 3) == ".md";
}

// Here, then one folder below.
std::vector<std::string> reports(const std::string& directory) {
  std::vector<std::string> paths;
  std::vector<std::string> folders;
  for (const std::string& name : entries(directory)) {
    const std::string path = join({directory, name}, "/");
    if (is_report(name) && is_regular(path)) paths.push_back(path);
    if (name[0] != '.' && is_directory(path)) folders.push_back(path);
  }
  for (const std::string& folder : folders) {
    for (const std::string& name : entries(folder)) {
      const std::string path = join({folder, name}, "/");
      if (is_report(name) && is_regular(path)) paths.push_back(path);
    }
  }
  return paths;
}

const std::string* value_of(const NamedValues& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == values.end() ? nullptr : &found->second;
}

std::optional<int> count_of(const NamedValues& values, std::string_view name) {
  const std::string* const text = value_of(values, name);
  if (text == nullptr) return std::nullopt;
  const std::optional<long> number = parse_int(trim(*text));
  if (!number || *number <= 0 || *number > kMostCount) return std::nullopt;
  return static_cast<int>(*number);
}

void add_values(const Json& json, NamedValues* values) {
  for (const auto& [name, value] : json.items()) {
    if (value.is_string()) values->emplace_back(name, value.get<std::string>());
    if (value.is_number_integer() || value.is_boolean()) values->emplace_back(name, dump(value));
  }
}

bool knows_anything(const Provenance& found) {
  return !found.system.empty() || found.nodes || found.gpus || found.allocated_nodes ||
         found.allocated_gpus;
}

void apply_run(RunInfo run, Provenance* found) {
  found->system = run.system;
  if (!run.hosts.empty()) found->nodes = static_cast<int>(run.hosts.size());
  found->gpus = run.gpus;
  found->gpus_unknown = run.gpus_unknown;
  found->command = run.command;
  found->run = std::move(run);
}

// The command of the Python tool's configuration, when it tells one.
std::vector<std::string> command_of(std::string_view text) {
  std::vector<std::string> command;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return command;
  for (const char* name : {"command", "argv", "cmd"}) {
    const auto found = json.find(name);
    if (found == json.end()) continue;
    if (found->is_string()) return split_words(found->get<std::string>());
    if (!found->is_array()) continue;
    for (const Json& word : *found) {
      if (word.is_string()) command.push_back(word.get<std::string>());
    }
    return command;
  }
  return command;
}

// True when the file says anything.
bool use_json(const std::string& directory, const std::string& name, Provenance* found) {
  const std::string path = join({directory, name}, "/");
  if (!is_regular(path)) return false;
  const Result<std::string> text = read_file(path, kMost_bytes);
  if (!text) {
    found->trouble.push_back(text.error().one_line());
    return false;
  }
  Result<RunInfo> run = run_info_from_json(*text, path);
  if (run) {
    apply_run(std::move(*run), found);
    found->source = name;
    return true;
  }
  if (!Json::accept(*text)) {
    found->trouble.push_back(run.error().one_line());
    return false;
  }
  apply_python_values(json_values(*text), found);
  if (!knows_anything(*found)) return false;
  found->command = command_of(*text);
  found->source = name;
  return true;
}

}  // namespace

NamedValues json_values(std::string_view text) {
  NamedValues values;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return values;
  add_values(json, &values);
  for (const auto& [name, value] : json.items()) {
    if (value.is_object()) add_values(value, &values);
  }
  return values;
}

NamedValues report_bullets(std::string_view markdown) {
  NamedValues values;
  bool inside = false;
  for (const std::string& raw : split_lines(markdown)) {
    const std::string_view line = trim(raw);
    if (line.substr(0, 1) == "#") {
      const size_t title = line.find_first_not_of("# ");
      inside = title != std::string_view::npos && line.substr(title) == "Distributed";
      continue;
    }
    if (!inside || line.substr(0, 4) != "- **") continue;
    const size_t end = line.find("**:", 4);
    if (end == std::string_view::npos) continue;
    std::string_view value = trim(line.substr(end + 3));
    // As code, in some of them.
    if (value.size() >= 2 && value.front() == '`' && value.back() == '`') {
      value = value.substr(1, value.size() - 2);
    }
    values.emplace_back(std::string(line.substr(4, end - 4)), std::string(value));
  }
  return values;
}

void apply_python_values(const NamedValues& values, Provenance* found) {
  if (const std::string* machine = value_of(values, "MACHINE")) found->system = *machine;
  found->allocated_nodes = count_of(values, "NUM_NODES");
  found->allocated_gpus = count_of(values, "NGPUS");
  // That tool starts one rank on each GPU, so its ranks are the GPUs.
  found->gpus = count_of(values, "WORLD_SIZE_IN_USE");
  const std::optional<int> per_node = count_of(values, "GPUS_PER_NODE");
  if (found->gpus && per_node) found->nodes = (*found->gpus + *per_node - 1) / *per_node;
  if (!found->gpus) found->gpus_unknown = "there is no WORLD_SIZE_IN_USE";
}

Provenance find_provenance(const std::string& directory) {
  Provenance found;
  for (const char* name : {"run_info.json", "config.json"}) {
    if (use_json(directory, name, &found)) return found;
  }
  for (const std::string& path : reports(directory)) {
    const Result<std::string> text = read_file(path, kMost_bytes);
    if (!text) {
      found.trouble.push_back(text.error().one_line());
      continue;
    }
    apply_python_values(report_bullets(*text), &found);
    if (!knows_anything(found)) continue;
    found.source = path.substr(directory.size() + 1);
    return found;
  }
  return found;
}

}  // namespace ezpz::bench
