// Known issues are data: known_issues/*.toml, built in, each file replaceable by one of the same
// name in a directory. A rule fires when everything it asks for is so; docs/known-issues.md
// describes it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doctor/check.h"
#include "doctor/version.h"

namespace ezpz::doctor {

// What a variable must be for the rule to fire.
struct VariableCondition {
  enum class Kind {
    set,         // to anything, the empty text included
    unset,       // not there, or empty
    equal,       // to one of values (globs)
    other_than,  // unset, or none of values: a recommended setting that is missing
  } kind;
  std::string name;
  std::vector<std::string> values;
};

// A flag of the user's command: --lora-rank 8, --lora-rank=8.
struct FlagCondition {
  std::vector<std::string> names;    // spellings
  std::vector<std::string> values;   // one of these (globs); empty: any that does not say no
  std::vector<std::string> none_of;  // not there, or none of these (globs)
  std::optional<long> at_least;      // of a number
  std::optional<long> at_most;
};

struct KnownIssue {
  std::string id;                     // "perlmutter-lora-small-rank"
  std::vector<std::string> machines;  // empty: every machine
  std::vector<VariableCondition> variables;
  std::vector<VersionBound> torch;
  std::vector<VersionBound> nccl;  // the one torch maps
  std::vector<FlagCondition> flags;
  int nodes_at_least = 0;
  Health health = Health::warning;
  std::string text;
  std::string remedy;
  std::string reference;
};

// One file's text; source_name is for messages ("known_issues/perlmutter.toml").
Result<std::vector<KnownIssue>> parse_known_issues(std::string_view toml_text,
                                                   const std::string& source_name);

// The built-in rules, overridden and extended by *.toml in override_dir unless that is empty.
Result<std::vector<KnownIssue>> load_known_issues(const std::string& override_dir = "");

}  // namespace ezpz::doctor
