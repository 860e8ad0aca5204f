// Reads journal.jsonl back. A torn last line (the machine went down mid-write) is left out and
// counted, everything before it is kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ezpz::journal {

struct Event {
  std::string time;  // ISO 8601, UTC
  double time_s = 0;
  std::string name;
  Json context;
};

struct Reading {
  std::vector<Event> events;
  size_t unreadable_lines = 0;
};

Reading read_events(std::string_view jsonl);
Result<Reading> read_journal(const std::string& path);

}  // namespace ezpz::journal
