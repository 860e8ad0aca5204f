// Host lists as SLURM writes them: "nid[001304-001306,001309],login01", with any number of brackets
// in a name ("rack[1-2]n[01-03]"), zero padding kept, and text after a bracket ("nid[1-2]-hsn0").
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz {

// A list that would expand beyond this is an error, not a memory explosion.
inline constexpr size_t max_hosts = 65536;

// The hosts in the order SLURM gives them (the last bracket of a name turns fastest). White space
// and newlines around names and commas are tolerated, duplicates are kept, an empty list is an
// empty vector. Error.where is the byte position, counted from 1.
Result<std::vector<std::string>> expand_hostlist(std::string_view list);

// The short form of the hosts in the order given: only neighbours are joined, so that
// expand_hostlist(compress_hostlist(x)) == x. Names must be free of the grammar's own characters
// (white space, comma, brackets).
std::string compress_hostlist(std::span<const std::string> hosts);

}  // namespace ezpz
