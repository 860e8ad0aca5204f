// The job's record: journal.jsonl, append-only, each decision with the facts behind it, written
// before the action it announces.
//
// A hung or full disk delays neither the job nor the loop: record() waits for the disk at most
// kWait_s (and not at all while the disk is known to be behind), keeps what failed in memory, tries
// again with the next event, and records the gap once the disk is back. Events stay in order.
#pragma once

#include <memory>
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

  // loop and scribe must outlive the journal. Answers of the scribe may come after it is gone.
  Journal(Loop& loop, Scribe& scribe, const std::string& path);
  ~Journal();

  // Runs the loop while it waits.
  void record(std::string_view name, const Json& context);
  // Handed over, not awaited: safe inside any callback.
  void note(std::string_view name, const Json& context);
  // Tries once more to write what is still in memory; at most so long.
  void close(double at_most_s);

  [[nodiscard]] size_t kept() const;  // events that are not on disk, as far as is known

 private:
  struct State;
  void wait(double at_most_s);

  Loop& loop_;
  std::shared_ptr<State> state_;
  bool behind_ = false;  // the last record was not on disk when its time was up
};

}  // namespace ezpz::journal
