// The flag table: one definition per flag yields parsing, help and suggestions (and later man pages
// and completion). Launchers' habits are spoken: -np 8, -ppn=4 and --nproc 8 all work, which is why
// this is ours: common parsers cannot express a one-dash word.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz {

struct Flag {
  std::vector<std::string> names;               // as typed: {"-n", "-np", "--nproc"}
  std::string value;                            // "N" in the help; empty for a switch
  std::string help;                             // for a reader in trouble; sentences
  std::function<Status(std::string_view)> set;  // gets "" for a switch
  bool hidden = false;
};

class FlagTable {
 public:
  // usage: "ezpz launch [flags] -- CMD ..."; about: a paragraph below it.
  FlagTable(std::string usage, std::string about);

  // A heading over the flags that follow.
  void section(std::string title);
  void add(Flag);

  void add_switch(std::vector<std::string> names, std::string help, bool* target);
  void add_string(std::vector<std::string> names, std::string value, std::string help,
                  std::string* target);
  // Any text, the empty one included; tells "not given" from "given and empty".
  void add_optional(std::vector<std::string> names, std::string value, std::string help,
                    std::optional<std::string>* target);
  void add_int(std::vector<std::string> names, std::string value, std::string help, long minimum,
               std::optional<long>* target);
  void add_seconds(std::vector<std::string> names, std::string value, std::string help,
                   double* target);
  // Comma-separated; given again, the lists join.
  void add_list(std::vector<std::string> names, std::string value, std::string help,
                std::vector<std::string>* target);
  // One of the words; anything else is an error that lists them.
  void add_choice(std::vector<std::string> names, std::string help, std::vector<std::string> words,
                  std::string* target);
  // Paragraphs after the flags: examples, files, exit codes.
  void epilogue(std::string text);

  // Consumes flags up to the first word that is not one, or through "--"; returns the rest.
  // stopped_at_dashes, when given, tells whether "--" ended the flags. --help is not special here:
  // wants_help() looks for it.
  Result<std::vector<std::string>> parse(const std::vector<std::string>& words,
                                         bool* stopped_at_dashes = nullptr) const;

  // For commands that start nothing: flags may also stand behind and between the arguments, which
  // are returned. What stands behind "--" are arguments.
  [[nodiscard]] Result<std::vector<std::string>> parse_mixed(
      const std::vector<std::string>& words) const;
  [[nodiscard]] static bool wants_help_mixed(const std::vector<std::string>& words);

  // True when --help or -h stands among the flags (before "--" and before the command).
  [[nodiscard]] bool wants_help(const std::vector<std::string>& words) const;
  [[nodiscard]] std::string help() const;
  [[nodiscard]] const std::vector<Flag>& flags() const { return flags_; }

 private:
  [[nodiscard]] const Flag* find(std::string_view name) const;
  [[nodiscard]] Error unknown(std::string_view word) const;

  std::string usage_;
  std::string about_;
  std::string epilogue_;
  std::vector<Flag> flags_;
  std::map<size_t, std::string> sections_;  // index of the flag that follows -> title
};

// "30", "90s", "15m", "2h": seconds. Nothing for anything else.
std::optional<double> parse_duration_s(std::string_view);

}  // namespace ezpz
