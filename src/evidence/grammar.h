// The grammar of failures as data: patterns/*.toml compiled into one matcher. A new launcher
// message is a new table, not new code; docs/patterns.md tells how to write one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.h"
#include "base/result.h"

namespace ezpz::evidence {

class Grammar {
 public:
  struct Example {
    std::string pattern;  // id
    std::string line;
    bool matches;                                    // false: a line that must not match
    bool preface = false;                            // of a [[preface]], which is no fact by itself
    std::map<std::string, std::string> expect = {};  // captures, by the names of fields.h
  };

  // The embedded patterns, each file replaced by one of the same name in override_dir, if that is
  // not empty; further files there are added. Entries that are for other machines only are left
  // out; without a machine's name all apply. An unreadable directory or a mistake in a file is an
  // Error with file and line; examples in override_dir are run, so that a pattern that cannot match
  // is one.
  static Result<Grammar> load(const std::string& override_dir = "",
                              const std::string& machine = "");

  ~Grammar();
  Grammar(Grammar&&) noexcept;
  Grammar& operator=(Grammar&&) noexcept;

  [[nodiscard]] std::vector<std::string> ids() const;
  // What to tell the user when this pattern was found; "" when there is nothing to tell.
  [[nodiscard]] std::string_view remedy(std::string_view id) const;
  // Those of communicators, which are members and no facts, are left out.
  [[nodiscard]] std::vector<Example> examples() const;
  // Does a file know this launcher's messages (its key `launchers`)?
  [[nodiscard]] bool covers_launcher(std::string_view name) const;

  struct Tables;  // defined in grammar_tables.h, for the matcher
  [[nodiscard]] const Tables& tables() const { return *tables_; }

 private:
  explicit Grammar(std::unique_ptr<Tables>);
  std::unique_ptr<Tables> tables_;
};

}  // namespace ezpz::evidence
