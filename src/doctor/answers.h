// Which paths answer at all. A path of the environment may lie on a file system that hangs, and
// whoever touches it then hangs with it: each is tried by a child first, all at once, bounded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ezpz::doctor {

struct PathAnswer {
  bool answered = false;     // false: silent until the end of our patience
  int error = 0;             // errno; 0: it is there
  uint64_t total = 0;        // bytes of its file system
  uint64_t free = 0;         // to this user
  uint64_t file_system = 0;  // statfs f_type
};

// A path that is not a folder answers, too. At most 256 paths are tried; those beyond, and those
// for which no process could be started, did not answer. Call while the process has one thread.
std::map<std::string, PathAnswer> ask_paths(const std::vector<std::string>& paths,
                                            double patience_s);

// Is a file system of this type one that other nodes see, too?
bool is_shared_file_system(uint64_t f_type);

}  // namespace ezpz::doctor
