// What doctor's checks answer with. A check is a pure function of what was seen (a struct filled by
// a look_*.cc beside it); it never says ok of what it could not see.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ezpz::doctor {

enum class Health { ok, unknown, warning, error };  // in rising order of concern
std::string_view to_string(Health);

struct Finding {
  std::string check;  // "no-kill": a stable name, the same in --json and in the table of checks
  Health health = Health::unknown;
  std::string why;        // one line: what was seen, with the figures; for unknown: why it was not
  std::string remedy;     // one line: what to type or ask for; empty only when ok
  std::string reference;  // where a known issue was reported; usually empty
};

// The most worrying; ok when there is nothing.
Health worst(const std::vector<Finding>&);

}  // namespace ezpz::doctor
