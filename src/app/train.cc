// `ezpz train`: becomes ezpz-train, which is a program of its own beside ezpz because it needs
// libtorch and ezpz must not.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "app/command.h"
#include "base/file.h"
#include "base/process.h"

namespace ezpz::app {

int run_train(const Words& words) {
  const std::string own = self_path();
  std::string program = own.substr(0, own.rfind('/') + 1) + "ezpz-train";
  std::vector<std::string> arguments = words;
  std::vector<char*> argv{program.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  if (errno == ENOENT) {
    return usage_error(
        "the trainer is not installed: " + program +
        " (build it with: tools/setup --train && cmake --preset train && cmake --build --preset "
        "train)");
  }
  const int trouble = errno;
  write_all(2, "ezpz: error: cannot start " + program + ": " + strerrordesc_np(trouble) + "\n");
  return 126;
}

}  // namespace ezpz::app
