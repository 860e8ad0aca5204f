#include "failover/job_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "base/text.h"

namespace ezpz::failover {
namespace {

constexpr double kPatience_s = 10;
constexpr int kMaxRuns = 10000;

std::string safe_name(const std::string& job_id) {
  std::string name;
  for (const char c : job_id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    name += plain ? c : '_';
  }
  return name.empty() ? "_" : name;
}

std::string run_path(const std::string& log_dir, const std::string& job_id, int run) {
  std::string path = log_dir + "/failover-" + safe_name(job_id);
  if (run > 1) path += ".run-" + std::to_string(run);
  return path;
}

// The errno of an operation by the scribe; ETIMEDOUT when the disk does not answer.
int through(journal::Scribe& scribe,
            const std::function<void(const journal::Scribe::OnDone&)>& operation) {
  // Shared: a hung disk may answer when nobody waits any more.
  auto trouble = std::make_shared<int>(ETIMEDOUT);
  operation([trouble](int got) { *trouble = got; });
  scribe.settle(kPatience_s);
  return *trouble;
}

}  // namespace

Result<JobLock> JobLock::take(const std::string& path) {
  JobLock lock;
  lock.fd_ = Fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!lock.fd_) {
    return Error{std::string("cannot write the lock: ") + strerrordesc_np(errno), path,
                 "choose another --log-dir"};
  }
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  if (fcntl(lock.fd_.get(), F_SETLK, &range) == 0) return lock;
  if (errno == EAGAIN || errno == EACCES) {
    struct flock holder = range;
    std::string who;
    if (fcntl(lock.fd_.get(), F_GETLK, &holder) == 0 && holder.l_pid > 0) {
      who = " (process " + std::to_string(holder.l_pid) + ")";
    }
    return Error{"another ezpz launch --auto-retry runs on this allocation" + who, path,
                 "end it first, or give each its own --log-dir and --hostfile"};
  }
  lock.unavailable_ = strerrordesc_np(errno);
  return lock;
}

Result<JobDir> make_job_dir(journal::Scribe& scribe, const std::string& log_dir,
                            const std::string& job_id, Exclusive exclusive) {
  const auto unusable = [](int trouble, const std::string& path) {
    return Error{std::string("cannot use the log directory: ") + strerrordesc_np(trouble), path,
                 "choose another --log-dir"};
  };
  const int trouble = through(
      scribe, [&](const journal::Scribe::OnDone& done) { scribe.make_directories(log_dir, done); });
  if (trouble != 0) return unusable(trouble, log_dir);

  JobDir made;
  if (exclusive == Exclusive::yes) {
    // The scribe makes the lock's file, too: on a hung disk that is what would hang.
    const std::string path = log_dir + "/.failover-" + safe_name(job_id) + ".lock";
    const int refused = through(
        scribe, [&](const journal::Scribe::OnDone& done) { scribe.open_append(path, done); });
    if (refused != 0) return unusable(refused, log_dir);
    Result<JobLock> lock = JobLock::take(path);
    if (!lock) return lock.error();
    made.lock.emplace(std::move(*lock));
  }
  for (made.run = 1; made.run <= kMaxRuns; ++made.run) {
    made.path = run_path(log_dir, job_id, made.run);
    if (file_exists(made.path)) continue;
    const int refused = through(scribe, [&](const journal::Scribe::OnDone& done) {
      scribe.make_new_directory(made.path, done);
    });
    if (refused == 0) return made;
    if (refused != EEXIST) return unusable(refused, made.path);  // else: another run was quicker
  }
  return Error{"too many runs of this job", log_dir, "clear the old ones away"};
}

std::string next_run(const std::string& log_dir, const std::string& job_id) {
  int run = 1;
  while (run < kMaxRuns && file_exists(run_path(log_dir, job_id, run))) ++run;
  return run_path(log_dir, job_id, run);
}

}  // namespace ezpz::failover
