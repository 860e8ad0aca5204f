// What a benchmark asks for: its own command, by label. Data (benchmarks/*.toml); a run that is
// published under a label is held against it. Readable as C++17.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::bench {

struct Cell {
  std::string label;                        // "agpt-2b/bs1/seq2048/tp1"
  std::map<std::string, std::string> says;  // "batch" -> "1": what the command must say
  std::vector<int> nodes;                   // numbers of nodes it is run on; empty: any
  bool whole_command = false;      // nothing else may be on the command, but for what is free
  std::set<std::string> required;  // of what it says, what a command may not leave out
  std::set<std::string> foreign;   // flags that its own command does not have: "--fsdp_config"
};

struct Benchmark {
  std::string name;            // "amsc"
  std::set<std::string> free;  // flags that change nothing that is measured: "--outdir"
  std::vector<Cell> cells;
};

// benchmarks/*.toml, built in.
const std::vector<Benchmark>& benchmarks();
Result<Benchmark> parse_benchmark(std::string_view toml_text, const std::string& name);

struct FoundCell {
  Cell cell;
  std::set<std::string> free;
  bool in_table = false;  // false: only the label itself says what was run
};
// The cell of that label; else what the label's own parts say (bs1, seq2048, tp1, lora-r16-attn).
FoundCell find_cell(std::string_view label);

// What a command says, flags by the names that cells use: --batch-size 1 and --batch=1 are "batch".
struct Said {
  std::map<std::string, std::string> known;
  std::map<std::string, std::string> others;  // "--fsdp_config" -> its value
};
Said what_command_says(const std::vector<std::string>& command);

// Where the command differs from the cell, a phrase each: "batch 2 instead of 1".
std::vector<std::string> departures(const FoundCell&, const std::vector<std::string>& command,
                                    std::optional<int> nodes);

}  // namespace ezpz::bench
