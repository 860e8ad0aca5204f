#include "evidence/grammar.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "evidence/grammar_image.h"
#include "evidence/grammar_tables.h"

namespace ezpz::evidence {
namespace {

constexpr size_t kMaxFileBytes = 1U << 20U;
constexpr size_t kMaxEntries = 4096;
constexpr size_t kMaxLiterals = size_t{1} << 15;

using NamedTexts = std::map<std::string, std::string>;  // file name -> TOML, in order of loading

Status add_overrides(const std::string& directory, NamedTexts* files) {
  std::error_code trouble;
  std::filesystem::directory_iterator item(directory, trouble);
  for (; !trouble && item != std::filesystem::directory_iterator(); item.increment(trouble)) {
    if (item->path().extension() != ".toml") continue;
    Result<std::string> text = read_file(item->path().string(), kMaxFileBytes);
    if (!text) return text.error();
    if (text->size() == kMaxFileBytes) {
      return Error{"patterns file is too large", item->path().string(), "at most 1 MiB"};
    }
    (*files)[item->path().filename().string()] = *std::move(text);
  }
  if (trouble) {
    return Error{"cannot read patterns: " + trouble.message(), directory,
                 "name a directory of *.toml files"};
  }
  return success();
}

// Safe forms for what is hard to write well. A host ends in a letter or digit: the full stop or
// colon behind a name is not part of it.
std::string expand_shorthands(std::string regex) {
  constexpr std::pair<std::string_view, std::string_view> kShorthands[] = {
      {"{host}", R"((?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?))"},
      {"{hosts}", R"((?P<hosts>[A-Za-z0-9](?:[A-Za-z0-9._,\[\]-]*[A-Za-z0-9\]])?))"},
      {"{ranks}", R"((?P<ranks>\[?[0-9]+(?:[-,][0-9]+)*\]?))"},
      {"{ip}", R"((?P<ip>[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+))"},
      {"{step_id}", R"((?P<step_id>[0-9](?:[0-9A-Za-z_.+]*[0-9A-Za-z])?))"},
  };
  for (const auto& [name, form] : kShorthands) {
    for (size_t at = regex.find(name); at != std::string::npos;
         at = regex.find(name, at + form.size())) {
      regex.replace(at, name.size(), form);
    }
  }
  return regex;
}

Result<Captures> captures_of(const Regex& regex, const std::string& where) {
  Captures captures;
  for (size_t group = 1; group < regex.names().size(); ++group) {
    const std::string& name = regex.names()[group];
    if (name.empty()) continue;
    const std::optional<Field> meaning = field(name);
    if (!meaning) {
      const std::optional<std::string> meant = nearest(name, field_names());
      return Error{"unknown capture '" + name + "'", where,
                   meant ? "did you mean '" + *meant + "'?" : "known: " + join(field_names(), " ")};
    }
    captures.emplace_back(*meaning, group);
  }
  return captures;
}

bool holds_one_of(std::string_view line, const std::vector<std::string>& texts) {
  const auto fold = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  const auto equal = [&](char a, char b) { return fold(a) == fold(b); };
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return std::search(line.begin(), line.end(), text.begin(), text.end(), equal) != line.end();
  });
}

Result<CompiledPattern> compile(const std::string& pattern, const std::string& where) {
  Result<Regex> regex = Regex::compile(expand_shorthands(pattern));
  if (!regex) {
    return Error{regex.error().what, where,
                 regex.error().hint.empty() ? "RE2 syntax: no look-around, no back-references"
                                            : regex.error().hint};
  }
  std::vector<std::string_view> groups;
  if (regex->find("", 0, &groups)) {
    return Error{"regex matches an empty line", where, "make it demand some text"};
  }
  Result<Captures> captures = captures_of(*regex, where);
  if (!captures) return captures.error();
  return CompiledPattern{*std::move(regex), *std::move(captures)};
}

Status check_examples(const std::string& where, const std::vector<ExampleLine>& examples,
                      const std::vector<std::string>& counterexamples,
                      const std::function<bool(const std::string&)>& matches) {
  for (const ExampleLine& example : examples) {
    if (!matches(example.line))
      return Error{"no match of the example '" + example.line + "'", where, ""};
  }
  for (const std::string& line : counterexamples) {
    if (matches(line)) return Error{"a match of '" + line + "', which is under 'not'", where, ""};
  }
  return success();
}

enum class Trust { built_in, site };

Result<Entry> make_entry(FileEntry spec, Trust trust) {
  if (spec.triggers.empty()) {
    return Error{"pattern '" + spec.id + "' has no triggers", spec.where,
                 "list literals of which every matching line holds at least one"};
  }
  for (const std::string& trigger : spec.triggers) {
    if (trigger.size() < Prefilter::kWindow || trigger.find_first_of("\r\n") != std::string::npos) {
      return Error{"trigger '" + trigger + "' is too short", spec.where, "at least 4 characters"};
    }
  }
  if (spec.examples.empty()) {
    return Error{"pattern '" + spec.id + "' has no example", spec.where,
                 "give a line that it must match"};
  }
  if (trust == Trust::built_in) return Entry{std::move(spec), nullptr, {}, {}, "", {}};
  Result<CompiledPattern> compiled = compile(spec.regex, spec.where);
  if (!compiled) return compiled.error();
  return Entry{
      std::move(spec), std::make_shared<CompiledPattern>(*std::move(compiled)), {}, {}, "", {}};
}

// An example may show the prefaces of its line, too: it is the last line that is matched.
std::string_view last_line(std::string_view example) {
  const size_t newline = example.rfind('\n');
  return newline == std::string_view::npos ? example : example.substr(newline + 1);
}

// Examples are whole lines, so this waits until the labels of all files are known.
Status try_examples(const Entry& entry, const std::vector<Label>& labels) {
  for (const ExampleLine& example : entry.spec.examples) {
    if (!holds_one_of(last_line(example.line), entry.spec.triggers)) {
      return Error{"no trigger of '" + entry.spec.id + "' is in its example '" + example.line + "'",
                   entry.spec.where, "a line without a trigger is never looked at"};
    }
  }
  std::vector<std::string_view> groups;
  return check_examples(entry.spec.where, entry.spec.examples, entry.spec.counterexamples,
                        [&](const std::string& example) {
                          const std::string_view line = last_line(example);
                          Origin origin;
                          const size_t label = read_labels(labels, line, &origin);
                          const std::string_view message = line.substr(label);
                          return entry.pattern().regex.find(message, 0, &groups) &&
                                 !entry.vetoed(message);
                        });
}

Result<Label> compile_label(FileLabel spec) {
  if (spec.regex.empty() || spec.regex.front() != '^') {
    return Error{"a label's regex begins with ^", spec.where, ""};
  }
  Result<CompiledPattern> compiled = compile(spec.regex, spec.where);
  if (!compiled) return compiled.error();
  std::vector<std::string_view> groups;
  const Status fine = check_examples(
      spec.where, spec.examples, spec.counterexamples,
      [&](const std::string& line) { return compiled->regex.find(line, 0, &groups); });
  if (!fine) return fine.error();
  return Label{std::move(spec), std::move(compiled->regex), std::move(compiled->captures)};
}

// All labels in one expression, to see with one look that a line has none.
Result<std::optional<Regex>> common_form(const std::vector<Label>& labels) {
  std::string all;
  for (const Label& label : labels) {
    std::string form = expand_shorthands(label.spec.regex);
    // A name may stand only once in an expression.
    for (size_t at = 0; (at = form.find("(?P<", at)) != std::string::npos;) {
      form.replace(at, form.find('>', at) + 1 - at, "(");
    }
    all += (all.empty() ? "(?:" : "|(?:") + form + ")";
  }
  if (all.empty()) return std::optional<Regex>();
  Result<Regex> regex = Regex::compile(all);
  if (!regex) return regex.error();
  return std::optional<Regex>(*std::move(regex));
}

template <class T>
void append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

Status merge_progress(const FileProgress& from, FileProgress* into) {
  for (const std::string& key : from.keys) {
    const bool word = std::all_of(key.begin(), key.end(),
                                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (key.size() < Prefilter::kWindow || !word) {
      return Error{"progress key '" + key + "' is not one word of at least 4 characters",
                   from.where, ""};
    }
  }
  append(from.keys, &into->keys);
  append(from.not_after, &into->not_after);
  append(from.not_followed, &into->not_followed);
  append(from.path_prefixes, &into->path_prefixes);
  append(from.bar_names, &into->bar_names);
  append(from.examples, &into->examples);
  append(from.counterexamples, &into->counterexamples);
  return success();
}

bool is_built_in(const std::string& name, const std::string& text) {
  for (const embedded::File& file : embedded::patterns()) {
    if (file.name == name) return file.text == text;
  }
  return false;
}

// Built-in files were parsed when ezpz was built.
Result<GrammarFile> parsed(const std::string& name, const std::string& text) {
  if (is_built_in(name, text)) {
    if (std::optional<GrammarFile> file = from_image(built_in_image(name))) return *std::move(file);
  }
  return parse_grammar_file(name, text);
}

bool meant_for(const FileEntry& entry, const std::string& machine) {
  return machine.empty() || entry.machines.empty() ||
         std::find(entry.machines.begin(), entry.machines.end(), machine) != entry.machines.end();
}

// The indices of the prefaces an entry names.
Result<std::vector<uint16_t>> find_prefaces(const std::vector<Entry>& entries,
                                            const std::vector<std::string>& ids,
                                            const std::string& where) {
  std::vector<uint16_t> found;
  for (const std::string& id : ids) {
    const auto preface = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.spec.id == id && entry.spec.purpose == Purpose::preface;
    });
    if (preface == entries.end()) {
      return Error{"no preface is called '" + id + "'", where, "name the id of a [[preface]]"};
    }
    found.push_back(static_cast<uint16_t>(preface - entries.begin()));
  }
  return found;
}

Status link_prefaces(std::vector<Entry>* entries) {
  for (Entry& entry : *entries) {
    Result<std::vector<uint16_t>> from =
        find_prefaces(*entries, entry.spec.takes_from, entry.spec.where);
    if (!from) return from.error();
    entry.takes_from = *std::move(from);
    Result<std::vector<uint16_t>> after =
        find_prefaces(*entries, entry.spec.only_after, entry.spec.where);
    if (!after) return after.error();
    entry.only_after = *std::move(after);
    Result<std::vector<uint16_t>> veto =
        find_prefaces(*entries, entry.spec.not_after, entry.spec.where);
    if (!veto) return veto.error();
    entry.not_after = *std::move(veto);
    for (const uint16_t preface : entry.only_after) {
      const std::string& group = entries->at(preface).spec.group;
      if (!entry.after_group.empty() && entry.after_group != group) {
        return Error{"only_after names prefaces of several groups", entry.spec.where,
                     "give them one group"};
      }
      entry.after_group = group;
    }
  }
  return success();
}

// Each literal once, with all its uses.
class LiteralTable {
 public:
  explicit LiteralTable(Grammar::Tables* tables) : tables_(*tables) {}

  LiteralUse& use(const std::string& literal) {
    const auto [found, fresh] = index_.try_emplace(lower(literal), tables_.literals.size());
    if (fresh) {
      tables_.literals.push_back(found->first);
      tables_.uses.emplace_back();
    }
    return tables_.uses[found->second];
  }

 private:
  Grammar::Tables& tables_;
  std::map<std::string, size_t> index_;
};

void build_prefilter(const std::vector<std::string>& speakers, Grammar::Tables* tables) {
  LiteralTable table(tables);
  for (size_t i = 0; i < tables->entries.size(); ++i) {
    for (const std::string& trigger : tables->entries[i].spec.triggers) {
      table.use(trigger).entries.push_back(static_cast<uint16_t>(i));
    }
  }
  for (const std::string& speaker : speakers) table.use(speaker).speaker = true;
  for (const std::string& bar : ProgressScan::bar_literals()) table.use(bar).bar = true;
  tables->prefilter = Prefilter(tables->literals);
  tables->steps = StepSearch(tables->progress.key_literals());
}

Result<std::unique_ptr<Grammar::Tables>> compile_all(const NamedTexts& files,
                                                     const std::string& machine) {
  auto tables = std::make_unique<Grammar::Tables>();
  std::vector<std::string> speakers;
  std::set<std::string> ids;
  for (const auto& [name, text] : files) {
    Result<GrammarFile> file = parsed(name, text);
    if (!file) return file.error();
    for (const std::string& speaker : file->speakers) {
      if (speaker.size() < Prefilter::kWindow) {
        return Error{"speaker '" + speaker + "' is too short", name, "at least 4 characters"};
      }
      speakers.push_back(speaker);
    }
    append(file->launchers, &tables->launchers);
    for (FileEntry& spec : file->entries) {
      if (!ids.insert(spec.id).second) {
        return Error{"pattern id '" + spec.id + "' is used twice", spec.where,
                     "ids are unique over all files"};
      }
      if (!meant_for(spec, machine)) continue;
      const Trust trust = is_built_in(name, text) ? Trust::built_in : Trust::site;
      Result<Entry> entry = make_entry(std::move(spec), trust);
      if (!entry) return entry.error();
      tables->entries.push_back(*std::move(entry));
    }
    for (FileLabel& spec : file->labels) {
      Result<Label> label = compile_label(std::move(spec));
      if (!label) return label.error();
      tables->labels.push_back(*std::move(label));
    }
    for (const FileProgress& progress : file->progress) {
      if (Status fine = merge_progress(progress, &tables->progress_rules); !fine) {
        return fine.error();
      }
    }
  }
  if (tables->entries.size() > kMaxEntries) {
    return Error{"too many patterns", "", "at most " + std::to_string(kMaxEntries)};
  }
  size_t triggers = 0;
  for (const Entry& entry : tables->entries) triggers += entry.spec.triggers.size();
  if (triggers + speakers.size() + tables->progress_rules.keys.size() > kMaxLiterals) {
    return Error{"too many triggers", "", "at most " + std::to_string(kMaxLiterals)};
  }
  Result<std::optional<Regex>> any_label = common_form(tables->labels);
  if (!any_label) return any_label.error();
  tables->any_label = *std::move(any_label);
  for (const Entry& entry : tables->entries) {
    if (entry.compiled == nullptr) continue;
    if (Status fine = try_examples(entry, tables->labels); !fine) return fine.error();
  }
  std::stable_sort(
      tables->entries.begin(), tables->entries.end(),
      [](const Entry& a, const Entry& b) { return a.spec.priority > b.spec.priority; });
  if (Status linked = link_prefaces(&tables->entries); !linked) return linked.error();
  tables->progress = ProgressScan(tables->progress_rules);
  build_prefilter(speakers, tables.get());
  return tables;
}

}  // namespace

const CompiledPattern& Entry::pattern() const {
  if (compiled == nullptr) {
    compiled = std::make_shared<CompiledPattern>(compile(spec.regex, spec.where).value());
  }
  return *compiled;
}

bool Entry::monotonous() const {
  if (spec.purpose != Purpose::fact || spec.event == Event::placement) return false;
  if (!takes_from.empty() || spec.own_host) return false;
  const Captures& captures = pattern().captures;
  return std::none_of(captures.begin(), captures.end(), [](const auto& capture) {
    return capture.first == Field::host || capture.first == Field::hosts ||
           capture.first == Field::world_size || capture.first == Field::last_rank;
  });
}

bool Entry::vetoed(std::string_view message) const { return holds_one_of(message, spec.unless); }

Grammar::Grammar(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}
Grammar::Grammar(Grammar&&) noexcept = default;
Grammar& Grammar::operator=(Grammar&&) noexcept = default;
Grammar::~Grammar() = default;

Result<Grammar> Grammar::load(const std::string& override_dir, const std::string& machine) {
  NamedTexts files;
  for (const embedded::File& file : embedded::patterns()) {
    files[std::string(file.name)] = std::string(file.text);
  }
  if (!override_dir.empty()) {
    if (Status read = add_overrides(override_dir, &files); !read) return read.error();
  }
  Result<std::unique_ptr<Tables>> tables = compile_all(files, machine);
  if (!tables) return tables.error();
  return Grammar(*std::move(tables));
}

std::vector<std::string> Grammar::ids() const {
  std::vector<std::string> ids;
  for (const Entry& entry : tables_->entries) ids.push_back(entry.spec.id);
  return ids;
}

std::string_view Grammar::remedy(std::string_view id) const {
  for (const Entry& entry : tables_->entries) {
    if (entry.spec.id == id) return entry.spec.remedy;
  }
  return "";
}

bool Grammar::covers_launcher(std::string_view name) const {
  const std::vector<std::string>& known = tables_->launchers;
  return std::find(known.begin(), known.end(), name) != known.end();
}

std::vector<Grammar::Example> Grammar::examples() const {
  std::vector<Example> all;
  for (const Entry& entry : tables_->entries) {
    const bool preface = entry.spec.purpose == Purpose::preface;
    for (const ExampleLine& example : entry.spec.examples) {
      all.push_back({entry.spec.id, example.line, true, preface, example.expect});
    }
    for (const std::string& line : entry.spec.counterexamples) {
      all.push_back({entry.spec.id, line, false, preface, {}});
    }
  }
  return all;
}

}  // namespace ezpz::evidence
