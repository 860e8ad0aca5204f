// From a cell of a table to the argv that runs it: always `ezpz launch`. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/table.h"

namespace ezpz::bench {

// The trainer's flags that a table may set, by its names for them: "batch" for --batch-size.
std::vector<std::string> trainer_settings();

struct PlanInput {
  std::string ezpz;     // this binary
  std::string trainer;  // where ezpz-train is, unless the cell says
  std::string run_dir;  // of this try: what {dir} stands for, and where launch keeps its record
  double grace_s = 30;
  bool (*is_secret)(std::string_view variable) = nullptr;
};
struct CellPlan {
  std::vector<std::string> argv;
  // Secrets are handed on and not written down: an argv is for all to see.
  std::map<std::string, std::string> env;
};
CellPlan plan_cell(const TableCell&, const PlanInput&);

// Where its metrics are to be found; empty: in the directory of the launch.
std::string metrics_of(const TableCell&, const std::string& run_dir);

}  // namespace ezpz::bench
