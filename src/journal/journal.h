// The job's record: journal.jsonl, append-only, each decision with the facts behind it, written
// before the action it announces.
//
// A hung or full disk delays neither the job nor the loop: record() waits for the disk at most
// kWait_s (and not at all while the disk is known to be behind), keeps what failed in memory, tries
// again with the next record, and records the gap once the disk is back.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/loop.h"
#include "journal/scribe.h"

namespace ezpz::journal {

class Journal {
 public:
  static constexpr double kWait_s = 0.25;
  static constexpr size_t kMaxKept = 1000;  // events in memory; the oldest go first beyond that

  // The scribe must outlive the journal.
  Journal(Loop& loop, Scribe& scribe, const std::string& path);

  void record(std::string_view name, const Json& context);
  // For moments when even kWait_s is too long: handed over, not awaited.
  void note(std::string_view name, const Json& context);
  // Tries once more to write what is still in memory; at most so long.
  void close(double at_most_s);

  [[nodiscard]] size_t kept() const { return kept_.size(); }

 private:
  void hand_over(std::string line);
  void retry_kept();

  Loop& loop_;
  Scribe& scribe_;
  std::string path_;
  int file_ = 0;
  bool open_ = false;
  bool behind_ = false;  // the last record was not on disk when its time was up
  size_t in_flight_ = 0;
  size_t failed_ = 0;   // writes refused since the last gap record
  size_t dropped_ = 0;  // events lost from memory
  double trouble_since_s_ = 0;
  int last_trouble_ = 0;
  std::deque<std::string> kept_;
};

}  // namespace ezpz::journal
