#include "app/log_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "base/file.h"

namespace ezpz::app {

Status read_log(const std::string& path, const std::function<void(std::string_view)>& feed) {
  const bool standard_input = path == "-";
  const char* const hint = "name one log file, or - for standard input";
  const auto trouble = [&](const std::string& why) {
    return Error{"cannot read the log: " + why, standard_input ? "standard input" : path, hint};
  };
  Fd file;
  if (!standard_input) {
    file = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return trouble(strerrordesc_np(errno));
    struct stat status;
    if (fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
      return trouble("it is a directory");
    }
  }
  const int fd = standard_input ? STDIN_FILENO : file.get();
  std::vector<char> buffer(size_t{1} << 20);
  while (true) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return trouble(strerrordesc_np(errno));
    if (n == 0) return success();
    feed({buffer.data(), static_cast<size_t>(n)});
  }
}

}  // namespace ezpz::app
