#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace ezpz {
namespace {

Error system_error(std::string what, const std::string& where) {
  return Error{std::move(what) + ": " + strerrordesc_np(errno), where, ""};
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() { return std::exchange(fd_, -1); }

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe", "");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot read", path);
  std::string content;
  char buffer[65536];
  while (content.size() < max_bytes) {
    const ssize_t n = read(fd.get(), buffer, std::min(sizeof buffer, max_bytes - content.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read", path);
    if (n == 0) break;
    content.append(buffer, static_cast<size_t>(n));
  }
  return content;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Status write_file_atomically(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp." + std::to_string(getpid());
  {
    const Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) return system_error("cannot write", temporary);
    if (!write_all(fd.get(), content) || fsync(fd.get()) != 0) {
      Error error = system_error("cannot write", temporary);
      unlink(temporary.c_str());
      return error;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = system_error("cannot replace", path);
    unlink(temporary.c_str());
    return error;
  }
  return success();
}

Status make_directories(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string prefix = path.substr(0, at);
    if (mkdir(prefix.c_str(), 0777) != 0 && errno != EEXIST) {
      return system_error("cannot make the directory", prefix);
    }
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Error{"not a directory", path, ""};
  }
  return success();
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool file_exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace ezpz
