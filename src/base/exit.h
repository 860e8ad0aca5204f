// How a process ended, decoded once from the raw wait status.
#pragma once

#include <string>

namespace ezpz {

struct Exit {
  int code = -1;   // exit code; -1 when it died from a signal
  int signal = 0;  // signal; 0 when it exited
  bool core = false;

  // Decodes a status of waitpid(2). 128+N is never invented here: a core dump would hide in it.
  static Exit from_wait_status(int status);
  [[nodiscard]] bool clean() const { return code == 0; }
  // What a shell would report: the code, or 128 + signal.
  [[nodiscard]] int shell_code() const { return signal != 0 ? 128 + signal : code; }
  // "exit code 3", "signal 9 (Killed)", "signal 11 (Segmentation fault), core dumped"
  [[nodiscard]] std::string describe() const;
};

}  // namespace ezpz
