#include "train/loop/own_parts.h"

#include <algorithm>

namespace ezpz::train {

std::vector<OwnPart> own_parts(Sharded& units) {
  std::vector<OwnPart> parts;
  for (size_t u = 0; u < units.units().size(); ++u) {
    const auto& shard = units.shards()[u];
    for (const Parameter& p : units.units()[u].parameters) {
      const int64_t from = std::max(p.offset, shard.begin);
      const int64_t to = std::min(p.offset + p.elements(), shard.begin + shard.size);
      if (from < to) parts.push_back({&p, u, from - shard.begin, from - p.offset, to - from});
    }
  }
  return parts;
}

}  // namespace ezpz::train
