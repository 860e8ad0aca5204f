// Lines that tell something about a later one. Some launchers spread one message over several lines
// (Hydra: "PID 4019 RUNNING AT nid1", then "EXIT CODE: 139"; torchrun: "host", "rank", "exitcode"),
// and output of others may come between. A preface is remembered until a message takes from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fact.h"
#include "evidence/labels.h"

namespace ezpz::evidence {

// How many lines a preface is remembered for.
constexpr int64_t kPrefaceReach = 100;

class Prefaces {
 public:
  // The preface that grammar entry `entry` of `group` found: what it captured, and whose line it
  // was. An earlier one of the same group and source is forgotten.
  void remember(uint16_t entry, const std::string& group, Fact captured, Origin origin,
                int64_t line);

  // Is the latest preface of `group` from this source, within reach, one of `entries`?
  [[nodiscard]] bool latest_is_one_of(const std::vector<uint16_t>& entries,
                                      const std::string& group, const Origin& origin,
                                      int64_t line) const;

  // Has any source said one of `entries` within reach? A veto is heard from wherever it comes.
  [[nodiscard]] bool was_said(const std::vector<uint16_t>& entries, int64_t line) const;

  // Fills what the fact lacks from the latest prefaces of `entries` from this source within reach.
  // One that gave something is forgotten: the next message has its own.
  void complete(const std::vector<uint16_t>& entries, const Origin& origin, int64_t line,
                Fact* fact);

 private:
  struct Said {
    uint16_t entry;
    std::string group;
    Fact captured;
    Origin origin;
    int64_t line;
  };
  void drop_out_of_reach(int64_t line);

  std::vector<Said> said_;  // oldest first, few
};

}  // namespace ezpz::evidence
