// known_issues/*.toml -> KnownIssue. The only source of this folder that reads TOML.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"
#include "doctor/known_issues.h"

namespace ezpz::doctor {
namespace {

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {"id",    "machines", "health",   "variables",
                                                "torch", "nccl",     "flags",    "nodes_at_least",
                                                "text",  "remedy",   "reference"};
  return keys;
}

std::string place(const std::string& source, const toml::source_region& region) {
  return source + ":" + std::to_string(region.begin.line);
}

bool take_text(const toml::node& node, std::string* target) {
  const auto value = node.value_exact<std::string>();
  if (!value || trim(*value).empty()) return false;
  *target = *value;
  return true;
}

// A list of strings; empty ones are values too.
bool take_list(const toml::node& node, std::vector<std::string>* target) {
  const toml::array* array = node.as_array();
  if (array == nullptr || array->empty()) return false;
  for (const toml::node& element : *array) {
    const auto value = element.value_exact<std::string>();
    if (!value) return false;
    target->push_back(*value);
  }
  return true;
}

// NAME = "value" | { set = true } | { unset = true } | { is = [...] } | { other_than = [...] }
bool take_variable(std::string_view name, const toml::node& node, KnownIssue* issue) {
  using Kind = VariableCondition::Kind;
  VariableCondition condition{Kind::equal, std::string(name), {}};
  if (const auto value = node.value_exact<std::string>()) {
    condition.values = {*value};
    issue->variables.push_back(std::move(condition));
    return true;
  }
  const toml::table* table = node.as_table();
  if (table == nullptr || table->size() != 1) return false;
  const auto [key, what] = *table->begin();
  if (key == "set" || key == "unset") {
    condition.kind = key == "set" ? Kind::set : Kind::unset;
    if (what.value_exact<bool>() != true) return false;
  } else if (key == "is" || key == "other_than") {
    condition.kind = key == "is" ? Kind::equal : Kind::other_than;
    if (!take_list(what, &condition.values)) return false;
  } else {
    return false;
  }
  issue->variables.push_back(std::move(condition));
  return true;
}

bool take_number(const toml::node& node, std::optional<long>* target) {
  const auto value = node.value_exact<int64_t>();
  if (!value) return false;
  *target = static_cast<long>(*value);
  return true;
}

// "--lora-rank|--lora_rank" = true | { from = 8, to = 17 } | { is = [...] } | { none_of = [...] }
bool take_flag(std::string_view names, const toml::node& node, KnownIssue* issue) {
  FlagCondition condition;
  condition.names = split(names, '|');
  const bool spelled = std::all_of(condition.names.begin(), condition.names.end(),
                                   [](const std::string& n) { return n.starts_with('-'); });
  if (!spelled) return false;
  if (node.value_exact<bool>() == true) {
    issue->flags.push_back(std::move(condition));
    return true;
  }
  const toml::table* table = node.as_table();
  if (table == nullptr || table->empty()) return false;
  for (const auto& [key, what] : *table) {
    bool ok = false;
    if (key == "from") ok = take_number(what, &condition.at_least);
    if (key == "to") ok = take_number(what, &condition.at_most);
    if (key == "is") ok = take_list(what, &condition.values);
    if (key == "none_of") ok = take_list(what, &condition.none_of);
    if (!ok) return false;
  }
  issue->flags.push_back(std::move(condition));
  return true;
}

bool take_each(const toml::node& node, KnownIssue* issue,
               bool (*take)(std::string_view, const toml::node&, KnownIssue*)) {
  const toml::table* table = node.as_table();
  if (table == nullptr || table->empty()) return false;
  for (const auto& [name, value] : *table) {
    if (name.str().empty() || !take(name.str(), value, issue)) return false;
  }
  return true;
}

bool take_versions(const toml::node& node, std::vector<VersionBound>* target) {
  const auto text = node.value_exact<std::string>();
  if (!text) return false;
  Result<std::vector<VersionBound>> bounds = parse_version_bounds(*text);
  if (!bounds) return false;
  *target = *std::move(bounds);
  return true;
}

bool take_health(const toml::node& node, Health* target) {
  const auto word = node.value_exact<std::string>();
  if (word != "warning" && word != "error") return false;
  *target = word == "error" ? Health::error : Health::warning;
  return true;
}

bool take_nodes(const toml::node& node, int* target) {
  const auto value = node.value_exact<int64_t>();
  if (!value || *value < 1 || *value > 1'000'000) return false;
  *target = static_cast<int>(*value);
  return true;
}

bool take(std::string_view key, const toml::node& node, KnownIssue* issue) {
  if (key == "id") return take_text(node, &issue->id);
  if (key == "machines") return take_list(node, &issue->machines);
  if (key == "health") return take_health(node, &issue->health);
  if (key == "variables") return take_each(node, issue, take_variable);
  if (key == "flags") return take_each(node, issue, take_flag);
  if (key == "torch") return take_versions(node, &issue->torch);
  if (key == "nccl") return take_versions(node, &issue->nccl);
  if (key == "nodes_at_least") return take_nodes(node, &issue->nodes_at_least);
  if (key == "text") return take_text(node, &issue->text);
  if (key == "remedy") return take_text(node, &issue->remedy);
  return take_text(node, &issue->reference);
}

bool is_id(const std::string& id) {
  return id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

Result<KnownIssue> parse_issue(const toml::table& table, const std::string& source) {
  KnownIssue issue;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(known_keys().begin(), known_keys().end(), name) == known_keys().end()) {
      const auto suggestion = nearest(name, known_keys());
      return Error{"unknown key '" + printable(name) + "'", place(source, key.source()),
                   suggestion ? "did you mean '" + *suggestion + "'?"
                              : "known: " + join(known_keys(), ", ")};
    }
    if (!take(name, node, &issue)) {
      return Error{"wrong value for '" + name + "'", place(source, node.source()),
                   "see docs/known-issues.md for the form"};
    }
  }
  const std::string where = place(source, table.source());
  for (const auto& [name, text] : std::initializer_list<std::pair<const char*, const std::string*>>{
           {"id", &issue.id}, {"text", &issue.text}, {"remedy", &issue.remedy}}) {
    if (text->empty()) {
      return Error{std::string("a known issue needs '") + name + "'", where,
                   "see docs/known-issues.md for the form"};
    }
  }
  if (!is_id(issue.id)) {
    return Error{"not an id: '" + printable(issue.id) + "'", where, "a-z, 0-9 and dashes"};
  }
  if (issue.variables.empty() && issue.flags.empty() && issue.torch.empty() && issue.nccl.empty()) {
    return Error{"the issue '" + issue.id + "' has no condition and would always be told", where,
                 "give variables, flags, torch or nccl"};
  }
  return issue;
}

}  // namespace

Result<std::vector<KnownIssue>> parse_known_issues(std::string_view toml_text,
                                                   const std::string& source_name) {
  const toml::parse_result parsed = toml::parse(toml_text, source_name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error{"not valid TOML: " + std::string(error.description()),
                 place(source_name, error.source()), "see docs/known-issues.md for the form"};
  }
  std::vector<KnownIssue> issues;
  for (const auto& [key, node] : parsed.table()) {
    const toml::array* array = node.as_array();
    if (key != "issue" || array == nullptr) {
      return Error{"unknown key '" + printable(key.str()) + "'", place(source_name, key.source()),
                   "the file is a list of [[issue]]"};
    }
    for (const toml::node& element : *array) {
      const toml::table* table = element.as_table();
      if (table == nullptr) {
        return Error{"an issue is a table", place(source_name, element.source()),
                     "write [[issue]]"};
      }
      Result<KnownIssue> issue = parse_issue(*table, source_name);
      if (!issue) return issue.error();
      const bool again = std::any_of(issues.begin(), issues.end(), [&](const KnownIssue& other) {
        return other.id == issue->id;
      });
      if (again) {
        return Error{"the id '" + issue->id + "' stands twice",
                     place(source_name, element.source()), ""};
      }
      issues.push_back(*std::move(issue));
    }
  }
  return issues;
}

Result<std::vector<KnownIssue>> load_known_issues(const std::string& override_dir) {
  // By file name, so that a site's file replaces the built-in one of the same name whole.
  std::map<std::string, std::vector<KnownIssue>> files;
  for (const embedded::File& file : embedded::known_issues()) {
    const std::string name(file.name);
    Result<std::vector<KnownIssue>> issues = parse_known_issues(file.text, "known_issues/" + name);
    if (!issues) return issues.error();
    files[name] = *std::move(issues);
  }
  if (!override_dir.empty()) {
    std::error_code error;
    std::filesystem::directory_iterator entry(override_dir, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      if (entry->path().extension() != ".toml") continue;
      const Result<std::string> text = read_file(entry->path().string(), 1U << 20U);
      if (!text) return text.error();
      Result<std::vector<KnownIssue>> issues = parse_known_issues(*text, entry->path().string());
      if (!issues) return issues.error();
      files[entry->path().filename().string()] = *std::move(issues);
    }
    if (error) {
      return Error{"cannot list the known issues: " + error.message(), override_dir,
                   "give a directory that holds NAME.toml files"};
    }
  }
  std::vector<KnownIssue> all;
  for (auto& [name, issues] : files) {
    all.insert(all.end(), issues.begin(), issues.end());
  }
  return all;
}

}  // namespace ezpz::doctor
