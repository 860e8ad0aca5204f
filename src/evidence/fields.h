// What a named group of a pattern means, and how its text becomes a value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.h"

namespace ezpz::evidence {

enum class Field {
  host,   // one host
  hosts,  // a host list: one fact for each
  ranks,  // "5", "4-7", "[0-3]", "2,4-5,7"; also spelled "rank"
  ip,
  code,    // exit code
  signal,  // a number, "SIGKILL" or "Killed"
  reason,
  step_id,     // the launcher's step
  step,        // the training step, of a checkpoint
  world_size,  // how many ranks there are
  last_rank,   // the same, less one
  seq,         // sequence number of a collective
  nranks,      // how many ranks a communicator has
};

// The field of a group's name; nothing for a name that is none.
std::optional<Field> field(std::string_view name);
std::vector<std::string> field_names();

// Longest list of ranks that one message may hold; the rest is dropped. A line is hostile input.
constexpr size_t kMaxRanks = 4096;
std::vector<int> parse_ranks(std::string_view text);

// 9 for "9", "-9", "SIGKILL" and "Killed"; 0 when it is no signal.
int parse_signal(std::string_view text);

// A field's value in a fact as text, as an example in a patterns file would write it; "" when the
// fact has none.
std::string describe(const Fact&, Field);

}  // namespace ezpz::evidence
