// cell.json: what became of one cell of a table, so that the table can be gone on with.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz::bench {

struct CellRecord {
  std::string label;
  std::string state = "pending";                // pending, running, done, failed, timed_out
  std::string why;                              // a phrase, unless done
  std::map<std::string, std::string> resolved;  // secrets masked
  std::vector<std::string> argv;                // of the latest try; secrets masked
  int exit_code = -1;
  int attempts = 0;
  std::string run_dir;  // of the latest try, beside cell.json: "attempt-1"
  std::string started;  // ISO 8601
  std::string ended;
  // Of the launch, while it runs: whoever goes on must not start beside it.
  std::string host;
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  std::vector<std::string> exported;  // tables that have its row
};

std::string to_json_text(const CellRecord&);
Result<CellRecord> cell_record_from_json(std::string_view text, const std::string& where);

// What differs between two cells, a phrase each: "batch 2 instead of 1".
std::vector<std::string> changes(const std::map<std::string, std::string>& before,
                                 const std::map<std::string, std::string>& now);

}  // namespace ezpz::bench
