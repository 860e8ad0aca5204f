#include "train/checkpoint/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ezpz::train {
namespace {

int result(int returned) { return returned == 0 ? 0 : errno; }

}  // namespace

int Disk::make_directory(const std::string& path) { return result(mkdir(path.c_str(), 0777)); }

int Disk::create(const std::string& path, int* fd) {
  *fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  return *fd >= 0 ? 0 : errno;
}

int Disk::write(int fd, const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    from += n;
    bytes -= static_cast<size_t>(n);
  }
  return 0;
}

int Disk::sync(int fd) { return result(fsync(fd)); }

int Disk::close(int fd) { return result(::close(fd)); }

int Disk::sync_directory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int trouble = result(fsync(fd));
  ::close(fd);
  return trouble;
}

int Disk::rename(const std::string& from, const std::string& to) {
  return result(::rename(from.c_str(), to.c_str()));
}

int Disk::exchange(const std::string& a, const std::string& b) {
  return result(renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE));
}

int Disk::remove_file(const std::string& path) { return result(unlink(path.c_str())); }

int Disk::remove_directory(const std::string& path) { return result(rmdir(path.c_str())); }

Disk& Disk::real() {
  static Disk disk;
  return disk;
}

}  // namespace ezpz::train
