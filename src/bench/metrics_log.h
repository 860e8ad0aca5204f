// The writer of metrics-<rank>.jsonl: one line a step, for any program. Readable as C++17.
//
// Crash-safe: a line is one write(2) at the end of the file, so that a run that is killed leaves at
// most one torn last line, which readers leave out. Whoever goes on with the file (the next
// attempt) first ends such a line: else its own first record would be glued to it and lost as well.
//
// Not thread-safe; one writer a file.
#pragma once

#include <string>

#include "base/file.h"
#include "base/result.h"
#include "bench/metrics_line.h"

namespace ezpz::bench {

class MetricsLog {
 public:
  // Makes the directory when it is missing.
  static Result<MetricsLog> open(const std::string& directory, int rank);

  // After a failure (a full disk) the next record is whole again. wall_s 0: now.
  Status write(const StepMetrics&, double wall_s = 0);

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  MetricsLog(Fd fd, std::string path, int rank, bool torn)
      : fd_(std::move(fd)), path_(std::move(path)), rank_(rank), torn_(torn) {}

  Fd fd_;
  std::string path_;
  int rank_ = 0;
  bool torn_ = false;  // the file does not end with a newline
};

}  // namespace ezpz::bench
