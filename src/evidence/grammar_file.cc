#include "evidence/grammar_file.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "base/text.h"
#include "base/toml.h"

namespace ezpz::evidence {
namespace {

// Reads one table and remembers the first thing wrong with it, so that the caller reads all fields
// in a row and asks once.
class Reader {
 public:
  Reader(std::string_view file, const toml::table& table) : file_(file), table_(table) {}

  std::string where() const { return where(table_); }
  const std::optional<Error>& error() const { return error_; }

  std::string text(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return "";
    if (!node->is_string()) {
      fail(*node, std::string(key) + " is not a string",
           "write " + std::string(key) + " = \"...\"");
      return "";
    }
    return node->as_string()->get();
  }

  std::string required_text(std::string_view key) {
    std::string value = text(key);
    if (value.empty()) fail(table_, std::string(key) + " is missing", "");
    return value;
  }

  int number(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return 0;
    const auto* value = node->as_integer();
    if (value == nullptr || value->get() < -1000 || value->get() > 1000) {
      fail(*node, std::string(key) + " is not a small whole number", "");
      return 0;
    }
    return static_cast<int>(value->get());
  }

  bool flag(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return false;
    const auto* value = node->as_boolean();
    if (value == nullptr) {
      fail(*node, std::string(key) + " is neither true nor false", "");
      return false;
    }
    return value->get();
  }

  // One string or a list of them.
  std::vector<std::string> texts(std::string_view key) {
    const toml::node* node = take(key);
    std::vector<std::string> values;
    if (node == nullptr) return values;
    if (node->is_string()) return {node->as_string()->get()};
    if (node->is_array()) {
      for (const toml::node& item : *node->as_array()) {
        if (!item.is_string()) break;
        values.push_back(item.as_string()->get());
      }
      if (values.size() == node->as_array()->size()) return values;
    }
    fail(*node, std::string(key) + " is not a list of strings", "");
    return {};
  }

  template <class Enum>
  Enum word(std::string_view key, Enum fallback) {
    const std::string value = text(key);
    if (value.empty()) return fallback;
    Enum result = fallback;
    if (!parse(value, &result)) {
      std::vector<std::string> words;
      for (int i = 0; i <= static_cast<int>(last_of(fallback)); ++i) {
        words.emplace_back(to_string(static_cast<Enum>(i)));
      }
      fail(*table_.get(key), "unknown " + std::string(key) + " '" + value + "'",
           "one of: " + join(words, " "));
    }
    return result;
  }

  // Lines, or tables of a line and what is captured from it.
  std::vector<ExampleLine> examples(std::string_view key) {
    const toml::node* node = take(key);
    std::vector<ExampleLine> lines;
    if (node == nullptr) return lines;
    if (const auto* array = node->as_array()) {
      for (const toml::node& item : *array) add_example(item, &lines);
    } else {
      add_example(*node, &lines);
    }
    return lines;
  }

  // The tables of [[key]].
  std::vector<const toml::table*> tables(std::string_view key) {
    const toml::node* node = take(key);
    std::vector<const toml::table*> found;
    if (node == nullptr) return found;
    if (const auto* array = node->as_array()) {
      for (const toml::node& item : *array) {
        if (item.is_table()) found.push_back(item.as_table());
      }
      if (found.size() == array->size()) return found;
    } else if (node->is_table()) {
      return {node->as_table()};
    }
    fail(*node, std::string(key) + " is not a list of tables",
         "write [[" + std::string(key) + "]] above each");
    return {};
  }

  // Call last: whatever was not asked for is a mistake.
  void finish() {
    for (const auto& [key, node] : table_) {
      if (std::find(taken_.begin(), taken_.end(), key.str()) != taken_.end()) continue;
      const std::optional<std::string> meant = nearest(key.str(), taken_);
      fail(node, "unknown key '" + std::string(key.str()) + "'",
           meant ? "did you mean '" + *meant + "'?" : "known: " + join(taken_, " "));
    }
  }

 private:
  static Kind last_of(Kind) { return Kind::unknown; }
  static Role last_of(Role) { return Role::context; }
  static Event last_of(Event) { return Event::new_run; }

  std::string where(const toml::node& node) const {
    return file_ + ":" + std::to_string(node.source().begin.line);
  }

  void fail(const toml::node& node, std::string what, std::string hint) {
    if (!error_) error_ = Error{std::move(what), where(node), std::move(hint)};
  }

  const toml::node* take(std::string_view key) {
    taken_.emplace_back(key);
    return table_.get(key);
  }

  void add_example(const toml::node& node, std::vector<ExampleLine>* lines) {
    ExampleLine example;
    if (node.is_string()) {
      example.line = node.as_string()->get();
    } else if (const auto* table = node.as_table()) {
      for (const auto& [key, value] : *table) {
        std::string text;
        if (value.is_string()) {
          text = value.as_string()->get();
        } else if (value.is_integer()) {
          text = std::to_string(value.as_integer()->get());
        } else {
          return fail(value, "an example's captures are strings or numbers", "");
        }
        if (key.str() == "line") {
          example.line = text;
        } else {
          example.expect[std::string(key.str())] = text;
        }
      }
    }
    if (example.line.empty()) {
      return fail(node, "an example is a line or {line = ..., host = ...}", "");
    }
    lines->push_back(std::move(example));
  }

  std::string file_;
  const toml::table& table_;
  std::vector<std::string> taken_;
  std::optional<Error> error_;
};

Result<FileEntry> read_entry(std::string_view file, const toml::table& table, Purpose purpose,
                             const std::vector<std::string>& file_machines) {
  Reader reader(file, table);
  FileEntry entry;
  entry.purpose = purpose;
  entry.where = reader.where();
  entry.id = reader.required_text("id");
  entry.regex = reader.required_text("regex");
  entry.triggers = reader.texts("triggers");
  for (const std::string& text : reader.texts("unless")) entry.unless.push_back(lower(text));
  if (purpose == Purpose::fact) {
    entry.kind = reader.word("kind", Kind::unknown);
    entry.role = reader.word("role", Role::context);
    entry.event = reader.word("event", Event::message);
    entry.signal = reader.number("signal");
    entry.weak = reader.flag("weak");
    entry.own_host = reader.flag("own_host");
    entry.remedy = reader.text("remedy");
    entry.takes_from = reader.texts("takes_from");
    entry.only_after = reader.texts("only_after");
    entry.not_after = reader.texts("not_after");
  }
  if (purpose == Purpose::preface) {
    entry.group = reader.text("group");
    if (entry.group.empty()) entry.group = entry.id;
  }
  entry.priority = reader.number("priority");
  entry.machines = reader.texts("machines");
  if (entry.machines.empty()) entry.machines = file_machines;
  entry.examples = reader.examples("example");
  entry.counterexamples = reader.texts("not");
  reader.finish();
  if (reader.error()) return *reader.error();
  return entry;
}

Result<FileLabel> read_label(std::string_view file, const toml::table& table) {
  Reader reader(file, table);
  FileLabel label;
  label.where = reader.where();
  label.regex = reader.required_text("regex");
  label.examples = reader.examples("example");
  label.counterexamples = reader.texts("not");
  reader.finish();
  if (reader.error()) return *reader.error();
  return label;
}

Result<FileProgress> read_progress(std::string_view file, const toml::table& table) {
  Reader reader(file, table);
  FileProgress progress;
  progress.where = reader.where();
  progress.keys = reader.texts("keys");
  progress.not_after = reader.texts("not_after");
  progress.not_followed = reader.texts("not_followed");
  progress.path_prefixes = reader.texts("path_prefixes");
  progress.bar_names = reader.texts("bar_names");
  progress.examples = reader.examples("example");
  progress.counterexamples = reader.texts("not");
  reader.finish();
  if (reader.error()) return *reader.error();
  return progress;
}

}  // namespace

Result<GrammarFile> parse_grammar_file(std::string_view name, std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& trouble = parsed.error();
    return Error{std::string(trouble.description()),
                 std::string(name) + ":" + std::to_string(trouble.source().begin.line),
                 "not valid TOML"};
  }
  const toml::table& root = parsed.table();
  Reader reader(name, root);
  GrammarFile file;
  file.speakers = reader.texts("speakers");
  file.launchers = reader.texts("launchers");
  const std::vector<std::string> machines = reader.texts("machines");
  constexpr std::pair<const char*, Purpose> kEntryTables[] = {
      {"pattern", Purpose::fact},
      {"checkpoint", Purpose::checkpoint},
      {"resume", Purpose::resume},
      {"preface", Purpose::preface},
      {"communicator", Purpose::communicator}};
  for (const auto& [key, purpose] : kEntryTables) {
    for (const toml::table* table : reader.tables(key)) {
      Result<FileEntry> entry = read_entry(name, *table, purpose, machines);
      if (!entry) return entry.error();
      file.entries.push_back(*std::move(entry));
    }
  }
  for (const toml::table* table : reader.tables("label")) {
    Result<FileLabel> label = read_label(name, *table);
    if (!label) return label.error();
    file.labels.push_back(*std::move(label));
  }
  for (const toml::table* table : reader.tables("progress")) {
    Result<FileProgress> progress = read_progress(name, *table);
    if (!progress) return progress.error();
    file.progress.push_back(*std::move(progress));
  }
  reader.finish();
  if (reader.error()) return *reader.error();
  return file;
}

}  // namespace ezpz::evidence
