// `ezpz patterns list` and `ezpz patterns test LOG`: for the author of a pattern.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/command.h"
#include "app/log_input.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/text.h"
#include "evidence/escapes.h"
#include "evidence/explain.h"
#include "evidence/segments.h"

namespace ezpz::app {
namespace {

using evidence::Entry;
using evidence::Fate;
using evidence::Grammar;
using evidence::Look;
using evidence::Purpose;

struct Options {
  bool as_json = false;
  std::string file;
  std::string id;
  std::string machine;
  std::string patterns_dir;
};

std::string purpose_word(Purpose purpose) {
  switch (purpose) {
    case Purpose::fact:
      return "pattern";
    case Purpose::checkpoint:
      return "checkpoint";
    case Purpose::resume:
      return "resume";
    case Purpose::preface:
      return "preface";
    case Purpose::communicator:
      return "communicator";
  }
  return "";
}

std::string file_of(const Entry& entry) {
  return entry.spec.where.substr(0, entry.spec.where.rfind(':'));
}

std::vector<const Entry*> all_entries(const Grammar& grammar) {
  std::vector<const Entry*> entries;
  for (const Entry& entry : grammar.tables().entries) entries.push_back(&entry);
  return entries;
}

Result<std::vector<const Entry*>> chosen_entries(const Grammar& grammar, const Options& options) {
  std::vector<const Entry*> entries = all_entries(grammar);
  if (options.file.empty()) return entries;
  std::set<std::string> files;
  for (const Entry* entry : entries) files.insert(file_of(*entry));
  const std::string name = files.contains(options.file) ? options.file : options.file + ".toml";
  if (!files.contains(name)) {
    return Error{"no pattern comes from a file called '" + printable(options.file) + "'", "--file",
                 "files: " + join({files.begin(), files.end()}, " ")};
  }
  std::erase_if(entries, [&](const Entry* entry) { return file_of(*entry) != name; });
  return entries;
}

std::string meaning(const Entry& entry) {
  if (entry.spec.purpose != Purpose::fact) return purpose_word(entry.spec.purpose);
  return fmt::format("{} {} {}", to_string(entry.spec.kind), to_string(entry.spec.role),
                     to_string(entry.spec.event));
}

Json entry_json(const Entry& entry) {
  Json json{{"id", entry.spec.id},
            {"table", purpose_word(entry.spec.purpose)},
            {"where", entry.spec.where},
            {"triggers", entry.spec.triggers},
            {"priority", entry.spec.priority}};
  if (entry.spec.purpose == Purpose::fact) {
    json["kind"] = std::string(to_string(entry.spec.kind));
    json["role"] = std::string(to_string(entry.spec.role));
    json["event"] = std::string(to_string(entry.spec.event));
  }
  if (!entry.spec.machines.empty()) json["machines"] = entry.spec.machines;
  return json;
}

int list(const Grammar& grammar, const Options& options) {
  const Result<std::vector<const Entry*>> entries = chosen_entries(grammar, options);
  if (!entries) return usage_error(entries.error().one_line());
  if (options.as_json) {
    Json json = Json::array();
    for (const Entry* entry : *entries) json.push_back(entry_json(*entry));
    write_all(1, dump_pretty(json) + "\n");
    return 0;
  }
  size_t id_width = 0;
  size_t meaning_width = 0;
  size_t where_width = 0;
  for (const Entry* entry : *entries) {
    id_width = std::max(id_width, entry->spec.id.size());
    meaning_width = std::max(meaning_width, meaning(*entry).size());
    where_width = std::max(where_width, entry->spec.where.size());
  }
  std::string text;
  for (const Entry* entry : *entries) {
    std::vector<std::string> triggers;
    for (const std::string& trigger : entry->spec.triggers) triggers.push_back('"' + trigger + '"');
    text += printable(
                fmt::format("{:<{}}  {:<{}}  {:<{}}  {}", entry->spec.id, id_width, meaning(*entry),
                            meaning_width, entry->spec.where, where_width, join(triggers, " ")),
                4096) +
            "\n";
  }
  write_all(1, text);
  return 0;
}

// Words that make a line nobody knows worth showing to whoever writes patterns.
const std::vector<std::string> kLooksWrong = {"error",  "fatal",  "traceback", "exception",
                                              "failed", "killed", "abort",     "segmentation"};
constexpr size_t kMostUnknown = 50;

// Goes through a log and prints as it goes: a log may be larger than memory.
class Trial {
 public:
  Trial(const Grammar& grammar, const Options& options)
      : options_(options), explainer_(grammar), looks_wrong_(kLooksWrong) {
    if (options_.as_json) print("{\"lines\": [");
  }

  void feed(std::string_view bytes) {
    segments_.feed(bytes, [this](std::string_view text, int64_t line) { look(text, line); });
  }

  void finish() {
    segments_.finish([this](std::string_view text, int64_t line) { look(text, line); });
    if (options_.as_json) {
      end_json();
    } else {
      end_text();
    }
    write_all(1, out_);
  }

 private:
  struct Count {
    int64_t looked = 0;
    int64_t taken = 0;
  };

  void print(std::string_view text) {
    out_ += text;
    if (out_.size() < (size_t{1} << 16)) return;
    write_all(1, out_);
    out_.clear();
  }

  void look(std::string_view segment, int64_t line) {
    const evidence::Explanation* explanation = explainer_.explain(segment, line);
    bool known = false;
    bool wanted = false;
    if (explanation != nullptr) {
      for (const Look& look : explanation->looks) {
        Count& count = counts_[look.entry];
        ++count.looked;
        count.taken += look.fate == Fate::taken ? 1 : 0;
        known = known || look.fate == Fate::taken;
        wanted = wanted || options_.id.empty() || look.entry->spec.id == options_.id;
      }
      if (wanted) show(*explanation, line);
    }
    if (!known) consider(segment, line);
  }

  void consider(std::string_view segment, int64_t line) {
    bool wrong = false;
    looks_wrong_.scan(segment, [&wrong](size_t, int) { wrong = true; });
    if (!wrong) return;
    ++unknown_lines_;
    if (unknown_.size() == kMostUnknown) return;
    std::string clean;
    evidence::strip_escapes(segment, evidence::kMaxLine, &clean);
    unknown_.emplace_back(line, printable(trim(clean)));
  }

  void show(const evidence::Explanation& explanation, int64_t line) {
    if (options_.as_json) {
      Json looks = Json::array();
      for (const Look& look : explanation.looks) looks.push_back(look_json(look));
      print(std::string(first_ ? "\n" : ",\n") +
            dump({{"line", line},
                  {"text", explanation.text},
                  {"label_host", explanation.label_host},
                  {"label_ranks", ranges(explanation.label_ranks)},
                  {"looks", looks}}));
      first_ = false;
      return;
    }
    print(fmt::format("{}: {}\n", line, explanation.text));
    for (const Look& look : explanation.looks) print("    " + look_text(look) + "\n");
  }

  static std::string look_text(const Look& look) {
    std::string text = fmt::format("{:<9} {} ({})", to_string(look.fate), look.entry->spec.id,
                                   look.entry->spec.where);
    switch (look.fate) {
      case Fate::vetoed:
        text += ": unless \"" + look.why + '"';
        break;
      case Fate::lost:
        text += ": to " + look.why + ", which comes before it on the same text";
        break;
      case Fate::not_after:
        text += ": not below " + look.why;
        break;
      default:
        break;
    }
    for (const auto& [name, value] : look.captures) {
      text.append("  ").append(name).append("=").append(value);
    }
    return printable(text, 2000);
  }

  static Json look_json(const Look& look) {
    Json captures = Json::object();
    for (const auto& [name, value] : look.captures) captures[name] = value;
    return {{"id", look.entry->spec.id},
            {"where", look.entry->spec.where},
            {"fate", std::string(to_string(look.fate))},
            {"why", look.why},
            {"captures", captures}};
  }

  void end_text() {
    if (counts_.empty()) print("no line holds a trigger\n");
    std::vector<std::pair<std::string, Count>> counts = sorted_counts();
    if (!counts.empty()) print("\nlines looked at, and taken, by each pattern:\n");
    for (const auto& [id, count] : counts) {
      print(fmt::format("{:>9} {:>9}  {}\n", count.looked, count.taken, printable(id)));
    }
    if (unknown_.empty()) return;
    print("\nnot known: lines that no pattern takes and that look like errors\n");
    for (const auto& [line, text] : unknown_) print(fmt::format("{}: {}\n", line, text));
    if (unknown_lines_ > static_cast<int64_t>(unknown_.size())) {
      print(
          fmt::format("... and {} more\n", unknown_lines_ - static_cast<int64_t>(unknown_.size())));
    }
  }

  void end_json() {
    Json counts = Json::object();
    for (const auto& [id, count] : sorted_counts()) {
      counts[id] = {{"looked", count.looked}, {"taken", count.taken}};
    }
    Json unknown = Json::array();
    for (const auto& [line, text] : unknown_) unknown.push_back({{"line", line}, {"text", text}});
    print("\n], \"patterns\": " + dump(counts) + ",\n\"not_known\": " + dump(unknown) +
          ",\n\"not_known_lines\": " + std::to_string(unknown_lines_) + "}\n");
  }

  [[nodiscard]] std::vector<std::pair<std::string, Count>> sorted_counts() const {
    std::vector<std::pair<std::string, Count>> counts;
    for (const auto& [entry, count] : counts_) {
      if (options_.id.empty() || entry->spec.id == options_.id) {
        counts.emplace_back(entry->spec.id, count);
      }
    }
    std::sort(counts.begin(), counts.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return counts;
  }

  const Options& options_;
  evidence::Explainer explainer_;
  evidence::Prefilter looks_wrong_;
  evidence::Segments segments_;
  std::map<const Entry*, Count> counts_;
  std::vector<std::pair<int64_t, std::string>> unknown_;
  int64_t unknown_lines_ = 0;
  std::string out_;
  bool first_ = true;
};

int test(const Grammar& grammar, const Options& options, const std::string& log) {
  if (!options.id.empty()) {
    const std::vector<std::string> ids = grammar.ids();
    if (std::find(ids.begin(), ids.end(), options.id) == ids.end()) {
      const auto meant = nearest(options.id, ids);
      return usage_error("no pattern is called '" + printable(options.id) + "': --id (" +
                         (meant ? "did you mean " + *meant + "?" : "see ezpz patterns list") + ")");
    }
  }
  // Opened before the first word is printed.
  std::optional<Trial> trial;
  const Status read = read_log(log, [&](std::string_view bytes) {
    if (!trial) trial.emplace(grammar, options);
    trial->feed(bytes);
  });
  if (!read) return usage_error(read.error().one_line());
  if (!trial) trial.emplace(grammar, options);
  trial->finish();
  return 0;
}

}  // namespace

int run_patterns(const Words& words) {
  Options options;
  FlagTable table(
      "ezpz patterns list [--json] [--file NAME] | ezpz patterns test [--json] [--id ID] LOG",
      "For whoever writes patterns (docs/patterns.md). list: each pattern, what it means, its file "
      "and line, its triggers. test: every line of LOG that holds a trigger, which patterns looked "
      "at it and what became of each; at the end the lines that look like errors and that no "
      "pattern takes. LOG - is standard input.");
  table.add_switch({"--json"}, "For programs.", &options.as_json);
  table.add_string({"--file"}, "NAME", "list: only the patterns of this file (slurm.toml).",
                   &options.file);
  table.add_string({"--id"}, "ID", "test: only the lines that this pattern looked at.",
                   &options.id);
  table.add_string({"--machine"}, "NAME",
                   "As on this machine. Default: the patterns of all machines.", &options.machine);
  table.add_string({"--patterns-dir"}, "DIR", "Patterns that replace or add to the built-in.",
                   &options.patterns_dir);
  table.epilogue(
      "What becomes of a pattern that looks at a line\n"
      "  taken      it counts, with what it captured\n"
      "  no match   the line holds a trigger of it, but its regex does not match\n"
      "  vetoed     the message holds one of its `unless`\n"
      "  lost       a pattern of higher priority, or an earlier one, matches the same text\n"
      "  not after  the line does not follow a preface of its `only_after`\n"
      "  repeated   the message said the same before\n\n"
      "Example\n"
      "  ezpz patterns test --patterns-dir ~/ezpz-patterns logs/failover-1234/attempt-1.log");
  if (FlagTable::wants_help_mixed(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse_mixed(words);
  if (!rest) return usage_error(rest.error().one_line());
  const std::string verb = rest->empty() ? "" : rest->at(0);
  if (verb != "list" && verb != "test") {
    return usage_error(verb.empty() ? "list or test? (see ezpz patterns --help)"
                                    : "neither list nor test: " + printable(verb));
  }
  if (verb == "list" && rest->size() != 1) {
    return usage_error("list takes no argument: " + printable(rest->at(1)) + " (--file NAME?)");
  }
  if (verb == "test" && rest->size() != 2) {
    return usage_error("give one log (ezpz patterns test LOG; - reads stdin)");
  }
  const Result<Grammar> grammar = Grammar::load(options.patterns_dir, options.machine);
  if (!grammar) return usage_error(grammar.error().one_line());
  return verb == "list" ? list(*grammar, options) : test(*grammar, options, rest->at(1));
}

}  // namespace ezpz::app
