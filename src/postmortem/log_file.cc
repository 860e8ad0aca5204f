#include "postmortem/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace ezpz::postmortem {
namespace {

// Small enough to stay in the second-level cache between the kernel's copy and the matcher's look.
constexpr size_t kBufferBytes = size_t{256} * 1024;

}  // namespace

LogFile::LogFile(std::string path, Fd owned, int fd)
    : path_(std::move(path)), owned_(std::move(owned)), fd_(fd), buffer_(kBufferBytes, '\0') {}

Result<LogFile> LogFile::open(const std::string& path) {
  if (path == "-") return LogFile("standard input", Fd(), STDIN_FILENO);
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) {
    return Error{std::string("cannot read the log: ") + strerrordesc_np(errno), path,
                 "give the path of a log, or of a job's directory"};
  }
  struct stat status {};
  if (fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{"a directory, and no job's: it has no journal.jsonl", path,
                 "give the path of a log, or of a job's directory (logs/failover-<jobid>)"};
  }
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const int number = fd.get();
  return LogFile(path, std::move(fd), number);
}

Status LogFile::read_to_end(const Sink& sink) {
  while (true) {
    const ssize_t got = ::read(fd_, buffer_.data(), buffer_.size());
    if (got == 0) return success();
    if (got < 0) {
      if (errno == EINTR) continue;
      return Error{std::string("cannot read the log: ") + strerrordesc_np(errno), path_,
                   "what was read before is judged"};
    }
    read_ += got;
    sink({buffer_.data(), static_cast<size_t>(got)});
  }
}

bool LogFile::was_cut() const {
  struct stat status {};
  return fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < read_;
}

}  // namespace ezpz::postmortem
