// Rows as a table for a terminal. Pure. Readable as C++17.
#pragma once

#include <string>
#include <vector>

namespace ezpz::bench {

// Columns as wide as they must be, two blanks between; no blanks at a line's end.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace ezpz::bench
