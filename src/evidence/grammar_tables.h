// The compiled grammar, as the matcher reads it. Immutable after load, so streams may share it.
#pragma once

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

namespace ezpz::evidence {

struct Entry {
  FileEntry spec;
  Regex regex;
  std::vector<std::pair<Field, size_t>> captures;  // and the group that holds it

  // The message holds one of spec.unless.
  [[nodiscard]] bool vetoed(std::string_view message) const;
};

// Why the prefilter looks for a literal.
struct LiteralUse {
  std::vector<uint16_t> entries;  // that it triggers
  bool step_key = false;
  bool bar = false;
  bool speaker = false;

  // A line with only these needs neither regular expressions nor its place in the log.
  [[nodiscard]] bool only_progress() const { return entries.empty() && !speaker; }
};

struct Grammar::Tables {
  std::vector<Entry> entries;  // of two that match the same text the earlier one is taken
  std::vector<Label> labels;
  FileProgress progress_rules;
  ProgressScan progress;
  std::vector<std::string> literals;
  std::vector<LiteralUse> uses;  // of each literal
  Prefilter prefilter{{}};
};

}  // namespace ezpz::evidence
