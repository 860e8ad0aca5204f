// The runs under a directory, each in a line: what ran where, how it ended, how fast it was.
// Readable as C++17.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/amsc.h"

namespace ezpz::bench {

// What is not known is empty or nothing, never 0.
struct PastRun {
  std::string path;  // below the directory that was asked for; "." is that itself
  std::string when;  // ISO 8601: when it began, else its first record
  std::string system;
  std::vector<std::string> hosts;
  std::optional<int> nodes;
  std::optional<int> gpus;
  std::string config;  // "agpt-2b/bs1/seq2048/tp1" of its command, else the program's name
  std::string status;  // the word of its end; "no end recorded"
  int attempts = 0;    // 0: unknown
  int64_t steps = 0;
  Speeds speeds;
  std::string network;              // the fallback, where there was one
  std::vector<std::string> doubts;  // why its numbers are to be taken with care
};

// One run's directory; an error when nothing in it tells of a run.
Result<PastRun> read_past_run(const std::string& directory);

// All below the directory, at most three folders deep, oldest first. What a run holds is not
// searched for more runs.
Result<std::vector<PastRun>> read_history(const std::string& directory);

// What a command calls itself, in the words of a benchmark's label.
std::string label_of_command(const std::vector<std::string>& command);

}  // namespace ezpz::bench
