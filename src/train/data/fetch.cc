#include "train/data/fetch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

namespace ezpz::train {
namespace {

constexpr int kLook_ms = 50;
constexpr size_t kMaxWords = 4096;

}  // namespace

Status fetch(const std::string& curl, const std::string& url, const std::string& path,
             double at_most_s, const std::function<bool()>& stop) {
  if (curl.empty())
    return Error{"there is no curl here", url, "install curl, or copy the data first"};
  const std::string temporary = path + ".part." + std::to_string(getpid());
  Result<Pipe> words = make_pipe();
  if (!words) return words.error();
  SpawnSpec spec;
  spec.argv = {curl,
               "--fail",
               "--location",
               "--silent",
               "--show-error",
               "--proto",
               "=http,https",
               "--proto-redir",
               "=http,https",
               "--connect-timeout",
               "10",
               "--speed-time",
               "30",
               "--speed-limit",
               "1",
               "--max-time",
               std::to_string(static_cast<long>(at_most_s) + 1),
               "--output",
               temporary,
               "--url",
               url};
  spec.stderr_fd = words->write.get();
  spec.parent_death_signal = SIGKILL;
  Result<pid_t> pid = spawn(spec);
  if (!pid) return pid.error();
  words->write.reset();

  const double until_s = monotonic_s() + at_most_s + 5;
  std::string said;
  int status = 0;
  bool killed = false;
  while (waitpid(*pid, &status, WNOHANG) == 0) {
    if (!killed && (stop() || monotonic_s() > until_s)) {
      kill(*pid, SIGKILL);
      killed = true;
    }
    pollfd ready{words->read.get(), POLLIN, 0};
    // The end of its words comes a moment before its own.
    if (poll(&ready, 1, kLook_ms) <= 0) continue;
    char buffer[512];
    const ssize_t n = read(words->read.get(), buffer, sizeof buffer);
    if (n > 0 && said.size() < kMaxWords) said.append(buffer, static_cast<size_t>(n));
    if (n == 0) poll(nullptr, 0, 1);
  }
  const Exit exit = Exit::from_wait_status(status);
  if (exit.clean() && rename(temporary.c_str(), path.c_str()) == 0) return success();
  const std::string why = exit.clean()   ? strerrordesc_np(errno)
                          : said.empty() ? "curl ended with " + exit.describe()
                                         : std::string(trim(said));
  unlink(temporary.c_str());
  return Error{"cannot fetch: " + printable(why), url, ""};
}

}  // namespace ezpz::train
