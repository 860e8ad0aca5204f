#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "base/file.h"
#include "base/proctable.h"
#include "base/text.h"

namespace ezpz {
namespace {

constexpr size_t kMaxHelperOut = 16U << 20U;
constexpr size_t kMaxHelperErr = 64U << 10U;
constexpr int kExecPatience_ms = 10'000;

std::vector<std::string> changed_environment(const EnvChanges& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    if (!changes.contains(std::string(pair.substr(0, pair.find('='))))) result.emplace_back(pair);
  }
  for (const auto& [name, value] : changes) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

bool is_runnable(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// What the child does between fork and exec: system calls only, because another thread may hold
// the allocator's lock. Reports errno through report_fd when exec fails.
[[noreturn]] void become(const SpawnSpec& spec, const char* program, char** argv, char** env,
                         pid_t parent, int null_fd, int report_fd) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Ignored signals stay ignored across exec; ours are ours.
  for (int number = 1; number < 32; ++number) signal(number, SIG_DFL);
  if (spec.new_session) setsid();
  if (spec.parent_death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, spec.parent_death_signal);
    if (getppid() != parent) _exit(127);  // the parent died before the prctl
  }
  dup2(spec.stdin_fd >= 0 ? spec.stdin_fd : null_fd, 0);
  if (spec.stdout_fd >= 0) dup2(spec.stdout_fd, 1);
  if (spec.stderr_fd >= 0) dup2(spec.stderr_fd, 2);
  if (spec.cwd.empty() || chdir(spec.cwd.c_str()) == 0) execve(program, argv, env);
  const int trouble = errno;
  [[maybe_unused]] const ssize_t written = write(report_fd, &trouble, sizeof trouble);
  _exit(127);
}

void close_all_but(const std::vector<int>& keep) {
  // Listed first, closed after: closing while reading the directory would close its descriptor.
  std::vector<int> open_fds;
  if (DIR* folder = opendir("/proc/self/fd"); folder != nullptr) {
    while (const dirent* entry = readdir(folder)) {
      if (const std::optional<long> fd = parse_int(entry->d_name)) {
        open_fds.push_back(static_cast<int>(*fd));
      }
    }
    closedir(folder);
  } else {
    for (int fd = 3; fd < 1024; ++fd) open_fds.push_back(fd);
  }
  const int null_fd = open("/dev/null", O_RDWR);
  for (const int fd : open_fds) {
    if (std::find(keep.begin(), keep.end(), fd) != keep.end()) continue;
    if (fd <= 2) {
      dup2(null_fd, fd);
    } else if (fd != null_fd) {
      close(fd);
    }
  }
  if (null_fd > 2) close(null_fd);
}

}  // namespace

Result<pid_t> fork_helper(const char* name, const std::vector<int>& keep,
                          const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid < 0) {
    return Error{std::string("cannot start a process: ") + strerrordesc_np(errno), name,
                 "check the limit on processes (ulimit -u) and memory"};
  }
  if (pid > 0) return pid;
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGUSR1, SIGUSR2, SIGPIPE}) {
    signal(number, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_NAME, name);
  close_all_but(keep);
  _exit(body());
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_runnable(name) ? name : "";
  static std::map<std::string, std::string> found;
  if (const auto known = found.find(name); known != found.end()) return known->second;
  const char* path = getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_runnable(candidate)) return found[name] = candidate;
  }
  return "";
}

std::string self_path() {
  char buffer[4096];
  const ssize_t n = readlink("/proc/self/exe", buffer, sizeof buffer);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : std::string();
}

Result<pid_t> spawn(const SpawnSpec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty()) return Error{"no command given", "", ""};
  const std::string program = find_program(spec.argv[0]);
  if (program.empty()) {
    const bool exists = spec.argv[0].find('/') != std::string::npos && file_exists(spec.argv[0]);
    return Error{exists ? "not an executable file" : "command not found", spec.argv[0],
                 exists ? "check its permissions" : "check its spelling and PATH"};
  }
  std::vector<std::string> argv_words = spec.argv;
  std::vector<std::string> env_words = changed_environment(spec.env);
  std::vector<char*> argv = pointers(argv_words);
  std::vector<char*> env = pointers(env_words);
  Result<Pipe> report = make_pipe();
  if (!report) return report.error();
  const Fd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return Error{std::string("cannot start a process: ") + strerrordesc_np(errno), spec.argv[0],
                 "check the limit on processes (ulimit -u) and memory"};
  }
  if (pid == 0) {
    become(spec, program.c_str(), argv.data(), env.data(), parent, null_fd.get(),
           report->write.get());
  }
  report->write.reset();
  // The program may lie on a file system that hangs: then there is no answer, and no child either.
  pollfd answer{report->read.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&answer, 1, kExecPatience_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    kill(pid, SIGKILL);
    return Error{"the command did not start in time", program, "does its file system answer?"};
  }
  int trouble = 0;
  ssize_t n = 0;
  do {
    n = read(report->read.get(), &trouble, sizeof trouble);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof trouble)) {
    waitpid(pid, nullptr, 0);
    return Error{std::string("cannot run the command: ") + strerrordesc_np(trouble), program, ""};
  }
  return pid;
}

namespace {

// What to call a question: "env SLURM_TIME_FORMAT=standard scontrol ..." is scontrol's.
std::string program_of(const Argv& argv) {
  size_t i = 0;
  if (!argv.empty() && argv[0] == "env") {
    for (i = 1; i < argv.size(); ++i) {
      if (argv[i] == "-u") {
        ++i;
      } else if (argv[i].find('=') == std::string::npos) {
        break;
      }
    }
  }
  return i < argv.size() ? argv[i] : "";
}

// One bounded question under way. Kept alive by the callbacks that hold it.
struct Helper : std::enable_shared_from_this<Helper> {
  Loop* loop = nullptr;
  pid_t pid = 0;
  Fd out;
  Fd err;
  bool exited = false;
  bool finished = false;
  Loop::TimerId deadline = 0;
  HelperResult result;
  std::string name;
  std::function<void(HelperResult)> done;

  // Reads what is there; closes at the end of file.
  void drain(Fd& fd, std::string& into, size_t limit) {
    char buffer[65536];
    while (fd) {
      const ssize_t n = read(fd.get(), buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        loop->unwatch_read(fd.get());
        fd.reset();
        return;
      }
      const size_t room = limit - std::min(limit, into.size());
      into.append(buffer, std::min(room, static_cast<size_t>(n)));
    }
  }

  void drain_both() {
    drain(out, result.out, kMaxHelperOut);
    drain(err, result.err, kMaxHelperErr);
  }

  void finish() {
    if (finished) return;
    finished = true;
    loop->cancel(deadline);
    for (Fd* fd : {&out, &err}) {
      if (*fd) loop->unwatch_read(fd->get());
      fd->reset();
    }
    if (result.started && !result.usable()) {
      const std::string said(trim(result.err));
      result.trouble =
          name + ": " + (result.timed_out ? "no answer in time" : result.exit.describe());
      if (!said.empty()) result.trouble += ": " + printable(said, 200);
    }
    done(std::move(result));
  }
};

}  // namespace

void start_helper(Loop& loop, const Argv& argv, double timeout_s,
                  std::function<void(HelperResult)> done, HelperKind kind) {
  auto helper = std::make_shared<Helper>();
  helper->loop = &loop;
  helper->name = program_of(argv);
  helper->done = std::move(done);

  Result<Pipe> out = make_pipe();
  Result<Pipe> err = make_pipe();
  SpawnSpec spec;
  spec.argv = argv;
  spec.new_session = true;
  if (kind == HelperKind::question) spec.parent_death_signal = SIGKILL;
  Result<pid_t> pid = Error{"cannot make a pipe", "", ""};
  if (out && err) {
    spec.stdout_fd = out->write.get();
    spec.stderr_fd = err->write.get();
    pid = spawn(spec);
  }
  if (!pid) {
    helper->result.trouble = pid.error().one_line();
    loop.after(0, [helper] { helper->finish(); });
    return;
  }
  helper->result.started = true;
  helper->pid = *pid;
  helper->out = std::move(out->read);
  helper->err = std::move(err->read);
  for (Fd* fd : {&helper->out, &helper->err}) {
    set_nonblocking(fd->get());
    loop.watch_read(fd->get(), [helper] { helper->drain_both(); });
  }
  loop.on_child(helper->pid, [helper](Exit exit) {
    helper->exited = true;
    helper->result.exit = exit;
    // Whatever it printed is in the pipes by now; a grandchild that keeps them open is not awaited.
    helper->drain_both();
    helper->finish();
  });
  helper->deadline = loop.after(timeout_s, [helper] {
    helper->result.timed_out = true;
    kill_family(helper->pid);
    helper->drain_both();
    helper->finish();  // its zombie is reaped by the callback above, whose finish() is then idle
  });
}

HelperResult run_helper(Loop& loop, const Argv& argv, double timeout_s) {
  auto result = std::make_shared<HelperResult>();
  auto ready = std::make_shared<bool>(false);
  start_helper(loop, argv, timeout_s, [result, ready](HelperResult got) {
    *result = std::move(got);
    *ready = true;
  });
  loop.run_until([ready] { return *ready; });
  return std::move(*result);
}

}  // namespace ezpz
