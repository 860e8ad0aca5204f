// The story of a job for a person, from its journal: what died, on what evidence, who was swapped,
// what was redone, how long it took. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "journal/reader.h"

namespace ezpz::failover {

struct Swap {
  std::string out;
  std::string in;
  std::string provenance;
};

struct AttemptStory {
  int attempt = 0;
  std::string verdict;
  std::string summary;
  std::string remedy;
  std::vector<std::string> evidence;  // "line 12: srun: error: ..."
  std::string decision;               // "swap: ..."
  // As the ranks told it: {"networks": [{"name", "hosts"}], "providers", "versions", "expected",
  // "fallback"}; null: they did not.
  Json network;
  std::vector<Swap> swaps;
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;
  std::optional<int64_t> resumed_from;
  double started_s = 0;
  double ended_s = 0;
};

struct Story {
  std::string job_id;
  std::string machine;
  std::string launcher;
  std::vector<AttemptStory> attempts;
  std::string stop_reason;  // empty: the record has no end
  int64_t steps_redone = 0;
  double lost_s = 0;  // from each failed attempt's end to the next one's start, and steps redone
  double total_s = 0;
};

Story read_story(const journal::Reading&);
std::string tell(const Story&);
Json to_json(const Story&);

}  // namespace ezpz::failover
