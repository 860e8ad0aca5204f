// The metrics of a run, read as a stream: memory grows with the steps of one rank and not with the
// bytes of the directory. Readable as C++17.
//
// One rank tells for all (train/tps is of all ranks together): the lowest that wrote steps. The
// others are read all the same, to count what is damaged and to see who is missing.
//
// A step that was done again after a failover counts once. Training is one line of steps: when a
// record goes back to step 21, whatever was recorded from 21 on belongs to work that was thrown
// away. The order of the lines decides, not their times: the clocks of two nodes are two clocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/metrics_line.h"

namespace ezpz::bench {

struct RankSeen {
  int64_t records = 0;
  int64_t last_iter = 0;
};

struct MetricsReading {
  std::string layout;              // "metrics-<rank>.jsonl", "metrics.jsonl", "<run_id>.jsonl"
  std::vector<std::string> files;  // names, in the order they were read
  std::vector<StepMetrics> steps;  // of the telling rank, ascending
  int64_t rank = 0;                // which one that is
  std::map<int64_t, RankSeen> ranks;
  int64_t redone = 0;  // records of the telling rank that a later attempt did again
  std::optional<double> first_time_s;
  std::optional<double> last_time_s;  // the latest, whatever the order
  // Lines, of all files.
  int64_t records = 0;     // steps
  int64_t others = 0;      // metrics without a step
  int64_t foreign = 0;     // JSON that is no metrics
  int64_t damaged = 0;     // not JSON, last lines left aside
  int64_t truncated = 0;   // last lines without an end
  int64_t nan = 0;         // records with NaN or an infinity
  int64_t clock_back = 0;  // of the telling rank: its clock went backwards
  int64_t bytes = 0;

  // Ranks below the highest that wrote nothing, when several did.
  [[nodiscard]] std::vector<int> missing_ranks(std::optional<int> world_size) const;
  // Steps between the first and the last that have no record.
  [[nodiscard]] int64_t gaps() const;
  // "3 damaged lines, ...": what was left out, for a person; empty: nothing was.
  [[nodiscard]] std::string losses() const;
};

// DIR, or DIR/metrics when that is where the files lie. An error when there are none, or none with
// a step in it.
Result<MetricsReading> read_metrics(const std::string& directory);

// Feeds one file's bytes, in pieces: what read_metrics() is made of.
class MetricsFeed {
 public:
  // file_rank: of records that do not tell theirs.
  explicit MetricsFeed(MetricsReading* reading) : reading_(reading) {}
  void begin_file(int64_t file_rank);
  void feed(std::string_view bytes);
  void end_file();

 private:
  void take_line(std::string_view line, bool whole);
  void take_step(const MetricsRecord&, int64_t rank);

  MetricsReading* reading_;
  int64_t file_rank_ = 0;
  std::string carry_;      // of a line that has not ended
  bool overlong_ = false;  // and is longer than any record
  std::optional<double> previous_time_s_;
  MetricsRecord record_;
};

}  // namespace ezpz::bench
