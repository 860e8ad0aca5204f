// Where a job's record lies: <log-dir>/failover-<jobid>/, and failover-<jobid>.run-2/ beside it
// when an earlier run of the same job left one. Nothing is ever overwritten.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "base/loop.h"
#include "base/result.h"
#include "journal/scribe.h"

namespace ezpz::failover {

// Held for the life of the process: two failover runs on one job would swap each other's hosts.
// A POSIX record lock: it works on Lustre and NFS, and forked helpers do not inherit it.
class JobLock {
 public:
  // The file must exist. An error when another live process holds it. Where the file system has no
  // locks the lock is not held and `unavailable` says why.
  static Result<JobLock> take(const std::string& path);
  [[nodiscard]] const std::string& unavailable() const { return unavailable_; }

 private:
  Fd fd_;
  std::string unavailable_;
};

struct JobDir {
  std::string path;
  int run = 1;
  std::optional<JobLock> lock;  // of an exclusive run
};

// Only one failover run may use an allocation; plain runs may stand side by side.
enum class Exclusive { no, yes };

// Makes the directory through the scribe, so that a hung disk is an error after a bounded wait and
// not a hang. job_id is made safe for a file name first.
Result<JobDir> make_job_dir(journal::Scribe&, const std::string& log_dir, const std::string& job_id,
                            Exclusive exclusive = Exclusive::yes);

// The directory make_job_dir() would make now; makes nothing.
std::string next_run(const std::string& log_dir, const std::string& job_id);

}  // namespace ezpz::failover
