// The grammar of failures as data: patterns/*.toml compiled into one matcher. A new launcher
// message is a new table, not new code; docs/patterns.md tells how to write one.
#pragma once

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
    bool matches;  // false: a line that must not match
  };

  // The embedded patterns, each file replaced by one of the same name in override_dir, if that is
  // not empty; further files there are added.
  static Result<Grammar> load(const std::string& override_dir = "");

  ~Grammar();
  Grammar(Grammar&&) noexcept;
  Grammar& operator=(Grammar&&) noexcept;

  [[nodiscard]] std::vector<std::string> ids() const;
  [[nodiscard]] std::vector<Example> examples() const;

  struct Tables;  // defined in grammar_tables.h, for the matcher
  [[nodiscard]] const Tables& tables() const { return *tables_; }

 private:
  explicit Grammar(std::unique_ptr<Tables>);
  std::unique_ptr<Tables> tables_;
};

}  // namespace ezpz::evidence
