// One patterns/*.toml as it stands in the file: checked for shape (known keys, right types, known
// words), not yet compiled. docs/patterns.md describes the format.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.h"
#include "base/result.h"

namespace ezpz::evidence {

// A line that must match, and what must be captured from it, field name to text.
struct ExampleLine {
  std::string line;
  std::map<std::string, std::string> expect;
  bool operator==(const ExampleLine&) const = default;
};

// What a match of an entry means.
// communicator: who has which rank of a part of the job, or of all of it (placements.h).
enum class Purpose { fact, checkpoint, resume, preface, communicator };

struct FileEntry {
  Purpose purpose = Purpose::fact;
  std::string id;
  std::string where;  // "slurm.toml:12"
  std::string regex;
  std::vector<std::string> triggers;
  std::vector<std::string> unless;  // texts that make a message none of this, in any case
  Kind kind = Kind::unknown;
  Role role = Role::context;
  Event event = Event::message;
  int signal = 0;     // of every match; 0: as captured
  bool weak = false;  // of every match, see Fact
  bool own_host =
      false;         // speaks of its own machine: the host that stands before it (source_host.h)
  int priority = 0;  // of two entries that match the same text the higher one is taken
  std::string remedy;
  std::string group;                    // of a preface: of one group only the latest counts
  std::vector<std::string> takes_from;  // prefaces that give what the line itself lacks
  std::vector<std::string> only_after;  // prefaces of one group, one of which must be its latest
  std::vector<std::string> not_after;   // prefaces that make a message none of this
  std::vector<std::string> machines;    // empty: all
  std::vector<ExampleLine> examples;
  std::vector<std::string> counterexamples;
  bool operator==(const FileEntry&) const = default;
};

struct FileLabel {
  std::string where;
  std::string regex;
  std::vector<ExampleLine> examples;
  std::vector<std::string> counterexamples;
  bool operator==(const FileLabel&) const = default;
};

// How programs print the step they are at; see progress_scan.h.
struct FileProgress {
  std::string where;
  std::vector<std::string> keys;           // best first: "global_step", "step", "iter"
  std::vector<std::string> not_after;      // words before a key that make it no step: "per"
  std::vector<std::string> not_followed;   // words after the number that do: "ms"
  std::vector<std::string> path_prefixes;  // words allowed before "/step": "train"
  std::vector<std::string> bar_names;      // descriptions of progress bars that count: "training"
  std::vector<ExampleLine> examples;       // expect: "step"
  std::vector<std::string> counterexamples;
  bool operator==(const FileProgress&) const = default;
};

struct GrammarFile {
  std::vector<std::string> speakers;   // "srun: ": where a message of this speaker begins
  std::vector<std::string> launchers;  // whose messages the file knows: "srun"
  std::vector<FileEntry> entries;
  std::vector<FileLabel> labels;
  std::vector<FileProgress> progress;
  bool operator==(const GrammarFile&) const = default;
};

// The name stands in errors only.
Result<GrammarFile> parse_grammar_file(std::string_view name, std::string_view text);

}  // namespace ezpz::evidence
