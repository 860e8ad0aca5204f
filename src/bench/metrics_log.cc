#include "bench/metrics_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

namespace ezpz::bench {

Result<MetricsLog> MetricsLog::open(const std::string& directory, int rank) {
  if (Status made = make_directories(directory); !made) return made.error();
  std::string path = directory + "/metrics-" + std::to_string(rank) + ".jsonl";
  Fd fd(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return Error{std::string("cannot write: ") + strerrordesc_np(errno), path, ""};
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) {
    return Error{std::string("cannot look at: ") + strerrordesc_np(errno), path, ""};
  }
  char last = '\n';
  // What cannot be read back is taken to be torn: an empty line too many harms nobody.
  const bool torn =
      info.st_size > 0 && (pread(fd.get(), &last, 1, info.st_size - 1) != 1 || last != '\n');
  return MetricsLog(std::move(fd), std::move(path), rank, torn);
}

Status MetricsLog::write(const StepMetrics& step, double wall_s) {
  std::string line = metrics_line(step, rank_, wall_s > 0 ? wall_s : ezpz::wall_s());
  if (torn_) line.insert(0, "\n");
  ssize_t written = -1;
  do {
    written = ::write(fd_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) {
    torn_ = false;
    return success();
  }
  // The rest is not sent after it: what went wrong will go wrong again, and the step is over.
  torn_ = torn_ || written > 0;
  const int trouble = written < 0 ? errno : ENOSPC;
  return Error{std::string("cannot write the step's metrics: ") + strerrordesc_np(trouble), path_,
               ""};
}

}  // namespace ezpz::bench
