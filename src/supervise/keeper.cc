#include "supervise/keeper.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/clock.h"
#include "base/proctable.h"
#include "base/text.h"

namespace ezpz::supervise {
namespace {

constexpr double kCommandTimeout_s = 10;
constexpr int kCommandTries = 3;

// What to end if ezpz goes. Messages: "S <pid>\n", "C <word>\x1f<word>...\n", "R\n" (release) and
// "Q\n" (an orderly end).
struct Orders {
  std::vector<pid_t> sessions;
  std::vector<Argv> commands;
  bool quit = false;

  void obey(const std::string& message) {
    if (message == "R") {
      sessions.clear();
      commands.clear();
    } else if (message == "Q") {
      quit = true;
    } else if (message.starts_with("S ")) {
      if (const auto pid = parse_int(message.substr(2))) {
        sessions.push_back(static_cast<pid_t>(*pid));
      }
    } else if (message.starts_with("C ")) {
      commands.push_back(split(message.substr(2), '\x1f'));
    }
  }
};

// Waits for the command at most kCommandTimeout_s; there is no Loop in here.
bool run_bounded(const Argv& argv) {
  SpawnSpec spec;
  spec.argv = argv;
  spec.new_session = true;
  const Result<pid_t> pid = spawn(spec);
  if (!pid) return false;
  const double limit_s = monotonic_s() + kCommandTimeout_s;
  while (monotonic_s() < limit_s) {
    int status = 0;
    if (waitpid(*pid, &status, WNOHANG) == *pid) return Exit::from_wait_status(status).clean();
    usleep(20'000);
  }
  kill(*pid, SIGKILL);
  return false;
}

int keep(int in) {
  setsid();  // the terminal's hang-up is not for us
  signal(SIGCHLD, SIG_DFL);
  Orders orders;
  std::string pending;
  char buffer[4096];
  while (true) {
    const ssize_t n = read(in, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    pending.append(buffer, static_cast<size_t>(n));
    for (size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
      orders.obey(pending.substr(0, end));
      pending.erase(0, end + 1);
    }
  }
  if (orders.quit) return 0;
  for (const pid_t session : orders.sessions) kill_session(session, SIGKILL);
  for (const Argv& command : orders.commands) {
    for (int i = 0; i < kCommandTries && !run_bounded(command); ++i) usleep(500'000);
  }
  return 0;
}

}  // namespace

Keeper::~Keeper() { send("Q\n"); }

Status Keeper::start() {
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return pipe.error();
  const int in = pipe->read.get();
  const Result<pid_t> pid = fork_helper("ezpz-keeper", {in}, [in] { return keep(in); });
  if (!pid) return pid.error();
  loop_.on_child(*pid, [](Exit) {});
  to_ = std::move(pipe->write);
  return success();
}

void Keeper::guard_session(pid_t leader) { send("S " + std::to_string(leader) + "\n"); }
void Keeper::guard_command(const Argv& argv) { send("C " + join(argv, "\x1f") + "\n"); }
void Keeper::release() { send("R\n"); }

void Keeper::send(const std::string& message) {
  // The pipe holds 64 KiB and the keeper does nothing but read: a write never waits in practice.
  if (to_ && !write_all(to_.get(), message)) to_.reset();
}

}  // namespace ezpz::supervise
