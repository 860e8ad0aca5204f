// What a table's cells came to: for a terminal, for a spreadsheet, for programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "bench/plausible.h"

namespace ezpz::bench {

std::string report_text(const std::vector<BenchRow>&);
std::string report_csv(const std::vector<BenchRow>&);  // with its header
std::string report_json(const std::vector<BenchRow>&);

}  // namespace ezpz::bench
