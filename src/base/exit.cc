#include "base/exit.h"

#include <string.h>
#include <sys/wait.h>

namespace ezpz {

Exit Exit::from_wait_status(int status) {
  Exit exit;
  if (WIFEXITED(status)) {
    exit.code = WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
    exit.core = WCOREDUMP(status);
  }
  return exit;
}

std::string Exit::describe() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  const char* name = sigdescr_np(signal);
  std::string text = "signal " + std::to_string(signal);
  if (name != nullptr) text += std::string(" (") + name + ")";
  if (core) text += ", core dumped";
  return text;
}

}  // namespace ezpz
