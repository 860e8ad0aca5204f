#include "bench/table.h"

#include <algorithm>
#include <set>

#include "base/embedded.h"
#include "base/flags.h"
#include "base/text.h"
#include "base/toml.h"
#include "bench/csv.h"
#include "bench/plan.h"

namespace ezpz::bench {
namespace {

constexpr size_t kMostCells = 1000;
constexpr size_t kLongestLabel = 120;
constexpr int64_t kMostNodes = 1'000'000;

// Keys whose value is one text.
struct TextKey {
  std::string_view name;
  std::string TableCell::*field;
};
constexpr TextKey kTexts[] = {
    {"label", &TableCell::label},       {"config", &TableCell::config},
    {"baseline", &TableCell::baseline}, {"trainer", &TableCell::trainer},
    {"metrics", &TableCell::metrics},   {"launcher", &TableCell::launcher},
    {"hostfile", &TableCell::hostfile}, {"network", &TableCell::network},
    {"system", &TableCell::system},
};
struct ListKey {
  std::string_view name;
  std::vector<std::string> TableCell::*field;
};
constexpr ListKey kLists[] = {
    {"args", &TableCell::args},
    {"command", &TableCell::command},
    {"launch", &TableCell::launch},
};
struct CountKey {
  std::string_view name;
  int TableCell::*field;
};
constexpr CountKey kCounts[] = {
    {"nodes", &TableCell::nodes},
    {"ppn", &TableCell::ppn},
    {"ranks", &TableCell::ranks},
    {"gpus", &TableCell::gpus},
};

template <class Keys>
auto find_key(const Keys& keys, std::string_view name) {
  return std::find_if(std::begin(keys), std::end(keys),
                      [&](const auto& each) { return each.name == name; });
}

std::vector<std::string> all_keys() {
  std::vector<std::string> names = {"env", "timeout"};
  for (const auto& key : kTexts) names.emplace_back(key.name);
  for (const auto& key : kLists) names.emplace_back(key.name);
  for (const auto& key : kCounts) names.emplace_back(key.name);
  for (const std::string& name : trainer_settings()) names.push_back(name);
  return names;
}

bool clean(const std::string& text) { return printable(text, text.size()) == text; }

// As letters that no file system and no shell makes anything of.
std::string folder_of(const std::string& label) {
  std::string name;
  for (const char c : label) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '=';
    name += plain ? c : '_';
  }
  if (!name.empty() && name[0] == '.') name[0] = '_';
  return name;
}

bool is_variable_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Error wrong(const toml::node& node, const std::string& what, std::string hint = "") const {
    return Error{printable(what, 200), path_ + ":" + std::to_string(node.source().begin.line),
                 std::move(hint)};
  }

  // Over what the cell has already. counts: of nodes, several make several cells.
  Status read_into(const toml::table& table, TableCell* cell, std::vector<int>* node_counts) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (Status read = read_key(name, node, cell, node_counts); !read) return read.error();
    }
    return success();
  }

 private:
  Status read_key(const std::string& name, const toml::node& node, TableCell* cell,
                  std::vector<int>* node_counts) {
    if (name == "nodes" && node.is_array()) return read_nodes(*node.as_array(), node_counts);
    if (name == "env") return read_env(node, cell);
    if (name == "timeout") return read_timeout(node, cell);
    if (const auto text = find_key(kTexts, name); text != std::end(kTexts)) {
      const auto value = node.value_exact<std::string>();
      if (!value || !clean(*value))
        return wrong(node, name + " is not a text", name + " = \"...\"");
      cell->*(text->field) = *value;
      return success();
    }
    if (const auto list = find_key(kLists, name); list != std::end(kLists)) {
      return read_words(name, node, &(cell->*(list->field)));
    }
    if (const auto count = find_key(kCounts, name); count != std::end(kCounts)) {
      const auto value = node.value_exact<int64_t>();
      if (!value || *value < 1 || *value > kMostNodes) {
        return wrong(node, name + " is not a whole number of at least 1");
      }
      cell->*(count->field) = static_cast<int>(*value);
      if (name == "nodes") node_counts->clear();
      return success();
    }
    const std::vector<std::string> settings = trainer_settings();
    if (std::find(settings.begin(), settings.end(), name) == settings.end()) {
      const auto meant = nearest(name, all_keys());
      return wrong(node, "not understood: " + name,
                   meant ? "did you mean " + *meant + "?" : "docs/bench.md has the keys");
    }
    const std::optional<std::string> value = scalar(node);
    if (!value || value->empty()) return wrong(node, name + " is neither a text nor a number");
    cell->settings[name] = *value;
    return success();
  }

  Status read_nodes(const toml::array& list, std::vector<int>* counts) {
    counts->clear();
    for (const toml::node& each : list) {
      const auto value = each.value_exact<int64_t>();
      if (!value || *value < 1 || *value > kMostNodes) {
        return wrong(each, "nodes holds something else than whole numbers of at least 1");
      }
      counts->push_back(static_cast<int>(*value));
    }
    if (counts->empty() || counts->size() > kMostCells) return wrong(list, "nodes is no such list");
    return success();
  }

  Status read_env(const toml::node& node, TableCell* cell) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) return wrong(node, "env is not a table", R"(env = { NAME = "value" })");
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      const std::optional<std::string> text = scalar(value);
      if (!is_variable_name(name) || !text) {
        return wrong(value, "not a variable and its value: " + name);
      }
      cell->env[name] = *text;
    }
    return success();
  }

  Status read_timeout(const toml::node& node, TableCell* cell) {
    const std::optional<std::string> text = scalar(node);
    cell->timeout_s = text ? parse_duration_s(*text) : std::nullopt;
    if (!cell->timeout_s) return wrong(node, "timeout is not a time", R"(timeout = "30m")");
    return success();
  }

  Status read_words(const std::string& name, const toml::node& node,
                    std::vector<std::string>* words) {
    const toml::array* const list = node.as_array();
    if (list == nullptr) {
      return wrong(node, name + " is not a list of words", name + " = [\"...\", \"...\"]");
    }
    words->clear();
    for (const toml::node& each : *list) {
      const std::optional<std::string> word = scalar(each);
      if (!word) return wrong(each, name + " holds something else than words");
      words->push_back(*word);
    }
    return success();
  }

  // A text or a whole number, as a word. Nothing for what an argv cannot hold.
  static std::optional<std::string> scalar(const toml::node& node) {
    if (const auto number = node.value_exact<int64_t>()) return std::to_string(*number);
    auto text = node.value_exact<std::string>();
    if (text && text->find('\0') != std::string::npos) return std::nullopt;
    return text;
  }

  std::string path_;
};

// What cannot be run, or would not be what it says.
std::string trouble_with(const TableCell& cell) {
  if (cell.label.empty()) return "a cell without a label";
  if (cell.label.size() > kLongestLabel) return "a label longer than 120 bytes";
  for (const std::string* text : {&cell.label, &cell.config, &cell.system}) {
    if (looks_like_formula(*text)) return "begins like a spreadsheet's formula: " + *text;
  }
  if (cell.command.empty()) {
    if (cell.settings.count("model") == 0) return "neither a model nor a command: " + cell.label;
    if (!cell.metrics.empty()) return "metrics is for cells with a command: " + cell.label;
    return "";
  }
  if (cell.command[0].empty()) return "the command's name is empty: " + cell.label;
  if (!cell.args.empty() || !cell.trainer.empty()) {
    return "args and trainer are for cells without a command: " + cell.label;
  }
  return "";
}

std::string stem_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

Result<CellTable> parse_cell_table(std::string_view toml_text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(toml_text);
  if (!parsed) {
    return Error{printable(parsed.error().description(), 200),
                 path + ":" + std::to_string(parsed.error().source().begin.line), ""};
  }
  Reader reader(path);
  CellTable table;
  table.name = folder_of(stem_of(path));
  const toml::table& top = parsed.table();
  std::string baseline;
  const toml::node* baseline_node = nullptr;
  TableCell defaults;
  std::vector<int> default_nodes;
  const toml::array* cells = nullptr;
  for (const auto& [key, node] : top) {
    if (key == "baseline" && node.is_string()) {
      baseline = *node.value_exact<std::string>();
      baseline_node = &node;
    } else if (key == "defaults" && node.is_table()) {
      if (Status read = reader.read_into(*node.as_table(), &defaults, &default_nodes); !read)
        return read.error();
      if (!defaults.label.empty()) return reader.wrong(node, "a label is of one cell");
    } else if (key == "cell" && node.is_array_of_tables()) {
      cells = node.as_array();
    } else {
      return reader.wrong(node, "not understood: " + std::string(key.str()),
                          "a table has baseline, [defaults] and [[cell]]");
    }
  }
  if (cells == nullptr || cells->empty()) {
    return Error{"the table has no [[cell]]", path + ":1", "docs/bench.md shows one"};
  }
  if (!baseline.empty()) defaults.baseline = baseline;
  std::set<std::string> labels, folders;
  for (const toml::node& node : *cells) {
    TableCell cell = defaults;
    std::vector<int> counts = default_nodes;
    if (Status read = reader.read_into(*node.as_table(), &cell, &counts); !read)
      return read.error();
    if (const std::string trouble = trouble_with(cell); !trouble.empty())
      return reader.wrong(node, trouble);
    const bool several = !counts.empty();
    if (!several) counts = {cell.nodes};
    for (const int count : counts) {
      TableCell one = cell;
      one.nodes = count;
      if (several) one.label += "/nodes" + std::to_string(count);
      one.folder = folder_of(one.label);
      if (!labels.insert(one.label).second) {
        return reader.wrong(node, "two cells have the label " + one.label);
      }
      if (!folders.insert(lower(one.folder)).second) {
        return reader.wrong(node, "another cell's label gives the same directory: " + one.label);
      }
      if (table.cells.size() == kMostCells) return reader.wrong(node, "more than 1000 cells");
      table.cells.push_back(std::move(one));
    }
  }
  for (size_t i = 0; i < table.cells.size(); ++i) {
    const std::string& named = table.cells[i].baseline;
    if (named.empty() || labels.count(named) > 0) continue;
    const auto meant = nearest(named, {labels.begin(), labels.end()});
    return reader.wrong(baseline_node != nullptr && named == baseline ? *baseline_node : *cells,
                        "no cell is called as the baseline says: " + named,
                        meant ? "did you mean " + *meant + "?" : "");
  }
  return table;
}

std::map<std::string, std::string> resolved(const TableCell& cell) {
  std::map<std::string, std::string> all = cell.settings;
  for (const ListKey& key : kLists) {
    if (!(cell.*key.field).empty()) all[std::string(key.name)] = shell_join(cell.*key.field);
  }
  for (const TextKey& key : kTexts) {
    const bool of_export = key.name == "label" || key.name == "config" || key.name == "baseline" ||
                           key.name == "system";
    if (!of_export && !(cell.*key.field).empty()) all[std::string(key.name)] = cell.*key.field;
  }
  for (const CountKey& key : kCounts) {
    if (key.name != "gpus" && cell.*key.field > 0) {
      all[std::string(key.name)] = std::to_string(cell.*key.field);
    }
  }
  for (const auto& [name, value] : cell.env) all["env " + name] = value;
  return all;
}

std::string series_of(const TableCell& cell) {
  std::string text;
  for (const auto& [name, value] : resolved(cell)) {
    // Ranks in all grow with the nodes.
    if (name != "nodes" && name != "ranks") text += name + "=" + shell_quote(value) + "\n";
  }
  return text;
}

std::string_view builtin_table(std::string_view name) {
  for (const embedded::File& file : embedded::benchmarks_tables()) {
    if (file.name.substr(0, file.name.rfind('.')) == name) return file.text;
  }
  return {};
}

std::vector<std::string> builtin_table_names() {
  std::vector<std::string> names;
  for (const embedded::File& file : embedded::benchmarks_tables()) {
    names.emplace_back(file.name.substr(0, file.name.rfind('.')));
  }
  return names;
}

}  // namespace ezpz::bench
