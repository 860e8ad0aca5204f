#include "evidence/labels.h"

#include <algorithm>

namespace ezpz::evidence {

size_t read_labels(const std::vector<Label>& known, std::string_view line, Origin* origin) {
  constexpr int kMostInARow = 3;
  size_t length = 0;
  std::vector<std::string_view> groups;
  for (int round = 0; round < kMostInARow; ++round) {
    const auto label = std::find_if(known.begin(), known.end(), [&](const Label& candidate) {
      return candidate.regex.find(line.substr(length), 0, &groups);
    });
    if (label == known.end()) break;
    for (const auto& [which, group] : label->captures) {
      if (which == Field::host) origin->host = groups[group];
      if (which == Field::ranks) origin->ranks = parse_ranks(groups[group]);
    }
    length += groups[0].size();
  }
  return length;
}

}  // namespace ezpz::evidence
