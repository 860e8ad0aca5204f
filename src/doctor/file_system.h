// Which kind of file system a path lies on.
#pragma once

#include <string>

namespace ezpz::doctor {

struct FileSystem {
  std::string name;  // "lustre", "tmpfs", "0x1234" for one not known by name; empty: not told
  bool in_memory = false;
  double free_bytes = 0;  // for us, not for root
  double total_bytes = 0;
  double free_files = 0;
  double total_files = 0;
};

// False with errno when it cannot be asked.
bool file_system_of(const std::string& path, FileSystem*);

}  // namespace ezpz::doctor
