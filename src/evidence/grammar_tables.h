// The compiled grammar, as the matcher reads it. Streams of one thread may share it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/fields.h"
#include "evidence/grammar.h"
#include "evidence/grammar_file.h"
#include "evidence/labels.h"
#include "evidence/prefilter.h"
#include "evidence/progress_scan.h"
#include "evidence/regex.h"
#include "evidence/step_search.h"

namespace ezpz::evidence {

using Captures = std::vector<std::pair<Field, size_t>>;  // a field and the group that holds it

struct CompiledPattern {
  Regex regex;
  Captures captures;
};

struct Entry {
  FileEntry spec;
  // Compiled by the first line that has a trigger of it: a job's output meets few of the patterns,
  // and compiling them all takes longer than starting a rank. Those of a site are compiled and
  // tried when they are loaded; those built in are known to compile (a test does it).
  mutable std::shared_ptr<const CompiledPattern> compiled;
  std::vector<uint16_t> takes_from;  // entries of these prefaces
  std::vector<uint16_t> only_after;
  std::string after_group;  // the group of only_after
  std::vector<uint16_t> not_after;

  [[nodiscard]] const CompiledPattern& pattern() const;
  // Its facts are as good as alike: they name no host, and are only told.
  [[nodiscard]] bool monotonous() const;
  // The message holds one of spec.unless.
  [[nodiscard]] bool vetoed(std::string_view message) const;
};

// Why the prefilter looks for a literal.
struct LiteralUse {
  std::vector<uint16_t> entries;  // that it triggers
  bool bar = false;               // of progress
  bool speaker = false;           // a message begins here
};

struct Grammar::Tables {
  std::vector<Entry> entries;  // of two that match the same text the earlier one is taken
  std::vector<std::string> launchers;
  std::vector<Label> labels;
  std::optional<Regex> any_label;  // what all of them have in common: most lines have none
  FileProgress progress_rules;
  ProgressScan progress;
  std::vector<std::string> literals;
  std::vector<LiteralUse> uses;  // of each literal
  Prefilter prefilter{{}};
  StepSearch steps;
};

}  // namespace ezpz::evidence
