// What launchers put before a line to tell whose it is ("12: ", "host.domain 3: ", "[rank3]: ").
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/fields.h"
#include "evidence/grammar_file.h"
#include "evidence/regex.h"

namespace ezpz::evidence {

struct Label {
  FileLabel spec;
  Regex regex;
  std::vector<std::pair<Field, size_t>> captures;  // and the group that holds it
};

// Where a line came from, as its labels tell.
struct Origin {
  std::string host;
  std::vector<int> ranks;
};

// Length of the labels that line begins with; several may stand in a row ("3: [rank3]: ").
size_t read_labels(const std::vector<Label>& known, std::string_view line, Origin* origin);

}  // namespace ezpz::evidence
