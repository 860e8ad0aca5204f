// Rows of a CSV that several processes may append to. Readable as C++17.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::bench {

// RFC 4180: quoted where a comma, a quote or a line break makes it necessary.
std::string csv_field(std::string_view);
// Without the end of the line.
std::string csv_row(const std::vector<std::string>& fields);

// Appends the row, behind the header when the file is new or empty. A file whose first line is not
// that header is refused, and left as it is. One lock and one write: of two that append at once
// none loses anything, and none writes a second header. A last line that somebody's death has cut
// off is ended first. Directories above the file are made.
//
// note: what is worth telling though it worked (a file system without locks); empty: nothing.
Status append_csv_row(const std::string& path, const std::string& header, const std::string& row,
                      std::string* note);

// Spreadsheets take a field that begins so for a formula, quoted or not.
bool looks_like_formula(std::string_view field);

}  // namespace ezpz::bench
