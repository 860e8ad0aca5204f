// Files and descriptors: bounded reads, atomic writes, an owning descriptor.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ezpz {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> make_pipe();  // close-on-exec
void set_nonblocking(int fd);

Result<std::string> read_file(const std::string& path, size_t max_bytes = 64U << 20U);
// Temp file beside it, fsync, rename: a reader sees the old content or the new, never a part.
Status write_file_atomically(const std::string& path, std::string_view content);
// mkdir -p
Status make_directories(const std::string& path);
bool file_exists(const std::string& path);
bool is_directory(const std::string& path);  // or a link to one

// All of it, or false with errno; retries on EINTR and short writes. Blocking descriptors only.
bool write_all(int fd, std::string_view bytes);

}  // namespace ezpz
