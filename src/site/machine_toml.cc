// machines/*.toml -> Machine. The only source of this folder that reads TOML.
#include <algorithm>
#include <filesystem>

#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"
#include "site/machine.h"

namespace ezpz::site {
namespace {

struct StringField {
  const char* key;
  std::string Machine::*member;
};
constexpr StringField string_fields[] = {
    {"title", &Machine::title},
    {"scheduler", &Machine::scheduler},
    {"launcher", &Machine::launcher},
    {"network", &Machine::network},
    {"network_remedy", &Machine::network_remedy},
    {"notes", &Machine::notes},
    {"pbs_select", &Machine::pbs_select},
    {"pbs_place", &Machine::pbs_place},
    {"pbs_filesystems", &Machine::pbs_filesystems},
    {"slurm_constraint", &Machine::slurm_constraint},
};

struct CountField {
  const char* key;
  int Machine::*member;
};
constexpr CountField count_fields[] = {
    {"gpus_per_node", &Machine::gpus_per_node},
    {"cpus_per_node", &Machine::cpus_per_node},
};

struct ListField {
  const char* key;
  std::vector<std::string>& (*member)(Machine&);
};
const ListField list_fields[] = {
    {"hostnames", [](Machine& m) -> std::vector<std::string>& { return m.hostnames; }},
    {"shared_hostnames",
     [](Machine& m) -> std::vector<std::string>& { return m.shared_hostnames; }},
    {"fqdns", [](Machine& m) -> std::vector<std::string>& { return m.fqdns; }},
    {"clusters", [](Machine& m) -> std::vector<std::string>& { return m.clusters; }},
    {"domains", [](Machine& m) -> std::vector<std::string>& { return m.naming.domains; }},
    {"interfaces", [](Machine& m) -> std::vector<std::string>& { return m.naming.interfaces; }},
};

struct SwitchField {
  const char* key;
  bool Machine::*member;
};
constexpr SwitchField switch_fields[] = {{"label_output", &Machine::label_output}};

std::vector<std::string> known_keys() {
  std::vector<std::string> keys = {"env", "cpu_bind"};
  for (const auto& field : switch_fields) keys.emplace_back(field.key);
  for (const auto& field : string_fields) keys.emplace_back(field.key);
  for (const auto& field : count_fields) keys.emplace_back(field.key);
  for (const auto& field : list_fields) keys.emplace_back(field.key);
  return keys;
}

std::string place(const std::string& source, const toml::source_region& region) {
  return source + ":" + std::to_string(region.begin.line);
}

// True when the field was this one; *ok turns false when its value has the wrong type.
bool take_string(Machine* machine, std::string_view key, const toml::node& node, bool* ok) {
  for (const auto& field : string_fields) {
    if (key != field.key) continue;
    const auto value = node.value_exact<std::string>();
    *ok = value.has_value();
    if (*ok) machine->*field.member = *value;
    return true;
  }
  return false;
}

bool take_count(Machine* machine, std::string_view key, const toml::node& node, bool* ok) {
  for (const auto& field : count_fields) {
    if (key != field.key) continue;
    const auto value = node.value_exact<int64_t>();
    *ok = value && *value >= 0 && *value <= 1'000'000;
    if (*ok) machine->*field.member = static_cast<int>(*value);
    return true;
  }
  return false;
}

bool take_list(Machine* machine, std::string_view key, const toml::node& node, bool* ok) {
  for (const auto& field : list_fields) {
    if (key != field.key) continue;
    const toml::array* array = node.as_array();
    *ok = array != nullptr;
    for (size_t i = 0; *ok && i < array->size(); ++i) {
      const auto value = (*array)[i].value_exact<std::string>();
      *ok = value && !value->empty();
      if (*ok) field.member(*machine).push_back(*value);
    }
    return true;
  }
  return false;
}

bool take_env(Machine* machine, std::string_view key, const toml::node& node, bool* ok) {
  if (key != "env") return false;
  const toml::table* table = node.as_table();
  *ok = table != nullptr;
  if (!*ok) return true;
  for (const auto& [name, value] : *table) {
    const auto text = value.value_exact<std::string>();
    *ok = *ok && text && !text->empty();
    if (*ok) machine->env.push_back({std::string(name.str()), *text});
  }
  return true;
}

bool take_switch(Machine* machine, std::string_view key, const toml::node& node, bool* ok) {
  for (const auto& field : switch_fields) {
    if (key != field.key) continue;
    const auto value = node.value_exact<bool>();
    *ok = value.has_value();
    if (*ok) machine->*field.member = *value;
    return true;
  }
  return false;
}

// cpu_bind = { 12 = "list:0-3:4-7:..." }: ranks on a node -> how they are bound.
bool take_cpu_bind(Machine* machine, std::string_view key, const toml::node& node, bool* ok) {
  if (key != "cpu_bind") return false;
  const toml::table* table = node.as_table();
  *ok = table != nullptr;
  if (!*ok) return true;
  for (const auto& [ranks, value] : *table) {
    const auto count = parse_int(ranks.str());
    const auto text = value.value_exact<std::string>();
    *ok = *ok && count && *count > 0 && *count <= 100'000 && text && !text->empty();
    if (*ok) machine->cpu_bind[static_cast<int>(*count)] = *text;
  }
  return true;
}

void put(std::vector<Machine>* machines, Machine machine) {
  const auto same = std::find_if(machines->begin(), machines->end(),
                                 [&](const Machine& m) { return m.name == machine.name; });
  if (same == machines->end()) {
    machines->push_back(std::move(machine));
  } else {
    *same = std::move(machine);
  }
}

}  // namespace

Result<Machine> parse_machine(std::string_view toml_text, const std::string& source_name) {
  const toml::parse_result parsed = toml::parse(toml_text, source_name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error{"not valid TOML: " + std::string(error.description()),
                 place(source_name, error.source()), "see machines/generic.toml for the form"};
  }
  Machine machine;
  machine.name = lower(std::filesystem::path(source_name).stem().string());
  for (const auto& [key, node] : parsed.table()) {
    bool ok = true;
    const bool known =
        take_string(&machine, key.str(), node, &ok) || take_count(&machine, key.str(), node, &ok) ||
        take_list(&machine, key.str(), node, &ok) || take_env(&machine, key.str(), node, &ok) ||
        take_switch(&machine, key.str(), node, &ok) ||
        take_cpu_bind(&machine, key.str(), node, &ok);
    const std::string name(key.str());
    if (!known) {
      const auto suggestion = nearest(name, known_keys());
      return Error{"unknown key '" + name + "'", place(source_name, key.source()),
                   suggestion ? "did you mean '" + *suggestion + "'?"
                              : "known: " + join(known_keys(), ", ")};
    }
    if (!ok) {
      return Error{"wrong type of value for '" + name + "'", place(source_name, node.source()),
                   "see machines/perlmutter.toml for the form"};
    }
  }
  if (machine.title.empty()) machine.title = machine.name;
  return machine;
}

Result<std::vector<Machine>> load_machines(const std::string& override_dir) {
  std::vector<Machine> machines;
  for (const embedded::File& file : embedded::machines()) {
    Result<Machine> machine = parse_machine(file.text, "machines/" + std::string(file.name));
    if (!machine.ok()) return machine.error();
    put(&machines, *std::move(machine));
  }
  if (!override_dir.empty()) {
    std::error_code error;
    std::vector<std::string> paths;
    std::filesystem::directory_iterator entry(override_dir, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      if (entry->path().extension() == ".toml") paths.push_back(entry->path().string());
    }
    if (error) {
      return Error{"cannot list the machine tables: " + error.message(), override_dir,
                   "give a directory that holds NAME.toml files"};
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      const Result<std::string> text = read_file(path, 1U << 20U);
      if (!text.ok()) return text.error();
      Result<Machine> machine = parse_machine(*text, path);
      if (!machine.ok()) return machine.error();
      put(&machines, *std::move(machine));
    }
  }
  if (find_machine(machines, "generic") == nullptr) {
    Machine generic;
    generic.name = "generic";
    generic.title = "an unknown machine";
    machines.push_back(std::move(generic));
  }
  std::sort(machines.begin(), machines.end(),
            [](const Machine& a, const Machine& b) { return a.name < b.name; });
  return machines;
}

}  // namespace ezpz::site
