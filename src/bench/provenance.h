// Where a run's metrics come from: which machine, how many nodes and GPUs took part, what was run,
// how it ended. From what lies beside them, in this order:
//
//   run_info.json   ezpz's, or the Python tool's ({"Distributed": {"MACHINE": ..., ...}})
//   config.json     the Python tool's
//   report*.md      its "### Distributed" bullets (- **MACHINE**: SunSpot), here or one folder
//   below
//
// Nothing is guessed. What the scheduler had allocated is kept apart from what ran: it helps a
// person, and is no answer. Readable as C++17.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/run_info.h"

namespace ezpz::bench {

struct Provenance {
  std::string source;        // "run_info.json"; empty: there is none
  std::string system;        // empty: unknown
  std::optional<int> nodes;  // that ran
  std::optional<int> gpus;   // that ran
  std::string gpus_unknown;  // why they are not known, when that is known
  std::optional<int> allocated_nodes;
  std::optional<int> allocated_gpus;
  std::vector<std::string> command;  // as run; empty: unknown
  std::optional<RunInfo> run;        // ezpz's own record
  std::vector<std::string> trouble;  // files that could not be used
};

Provenance find_provenance(const std::string& directory);

// "MACHINE" -> "SunSpot", from the bullets of the section "Distributed".
NamedValues report_bullets(std::string_view markdown);
// The same from JSON: its top level and the objects in it.
NamedValues json_values(std::string_view text);
// What the Python tool's names say.
void apply_python_values(const NamedValues&, Provenance*);

}  // namespace ezpz::bench
