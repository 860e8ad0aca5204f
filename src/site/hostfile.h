// A user's hostfile: one host a line; '#' comments, blank lines, CRLF, "host slots=4", "host:4" and
// SLURM's bracket form are understood. Order is kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/node.h"
#include "base/result.h"

namespace ezpz::site {

struct Hostfile {
  std::vector<Node> hosts;              // spelled as written, each node once
  std::vector<std::string> duplicates;  // spellings dropped because the node was there already
};

Result<Hostfile> parse_hostfile(std::string_view text, const std::string& path, const NodeNaming&);
Result<Hostfile> read_hostfile(const std::string& path, const NodeNaming&);
std::string format_hostfile(const std::vector<Node>&);  // spellings, one a line

// The hostfile's nodes in its order, each spelled as the allocation spells it; an error names the
// hosts that are not in the allocation. An empty allocation (unknown) accepts all.
Result<std::vector<Node>> within_allocation(const std::vector<Node>& hosts,
                                            const std::vector<Node>& allocation,
                                            const std::string& path);

}  // namespace ezpz::site
