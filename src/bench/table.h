// A table of runs to measure: benchmarks/tables/*.toml, or a person's own. Pure: text in, cells
// with everything resolved out; docs/bench.md has the keys.
//
//   baseline = "full/nodes1"
//   [defaults]          what every cell has unless it says otherwise
//   [[cell]]            label, and what differs; nodes = [1, 2] makes two cells of it
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::bench {

struct TableCell {
  std::string label;
  std::string folder;  // the label as a name for a directory; no two cells of a table share one
  std::string config;  // the AmSC label; empty: it is not exported
  std::string baseline;
  std::map<std::string, std::string> settings;  // of the trainer: "batch" -> "1"
  std::string trainer;                          // empty: ezpz-train
  std::vector<std::string> args;                // more words for the trainer
  std::vector<std::string> command;             // instead of the trainer
  std::string metrics;  // where the command's metrics lie; empty: in the launch's own directory
  std::map<std::string, std::string> env;
  std::vector<std::string> launch;  // more flags of ezpz launch
  std::string launcher;
  std::string hostfile;
  std::string network;  // that its ranks must use
  std::string system;   // for the export, where it cannot be found out
  int nodes = 0;        // 0: as launch finds it; so below
  int ppn = 0;
  int ranks = 0;
  int gpus = 0;
  std::optional<double> timeout_s;
};

struct CellTable {
  std::string name;  // "scaling" of "scaling.toml"
  std::vector<TableCell> cells;
};

// path: for messages. An error tells the line.
Result<CellTable> parse_cell_table(std::string_view toml_text, const std::string& path);

// What a cell is, by the names of the table: for people, and to see whether a result is still of
// what the table asks for. What only concerns the export or the patience with it is not part.
std::map<std::string, std::string> resolved(const TableCell&);

// The same without its nodes and its label: cells that are alike in it are one series of sizes.
std::string series_of(const TableCell&);

// The built-in table of that name; empty when there is none.
std::string_view builtin_table(std::string_view name);
std::vector<std::string> builtin_table_names();

}  // namespace ezpz::bench
