// The operating system's side of saving, behind one seam: tests fail or kill at each call, and the
// trainer's --fault enospc@ does.
#pragma once

#include <cstddef>
#include <string>

namespace ezpz::train {

// Every call gives 0 or an errno.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual int make_directory(const std::string& path);
  virtual int create(const std::string& path, int* fd);       // a new file, to write
  virtual int write(int fd, const void* data, size_t bytes);  // all of it
  virtual int sync(int fd);
  virtual int close(int fd);
  virtual int sync_directory(const std::string& path);
  virtual int rename(const std::string& from, const std::string& to);
  // Swaps two directories in one instant; ENOSYS or EINVAL where the file system cannot.
  virtual int exchange(const std::string& a, const std::string& b);
  virtual int remove_file(const std::string& path);
  virtual int remove_directory(const std::string& path);

  static Disk& real();
};

}  // namespace ezpz::train
