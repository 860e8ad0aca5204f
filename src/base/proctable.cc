#include "base/proctable.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace ezpz {

std::optional<Process> read_process(pid_t pid) {
  const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!stat) return std::nullopt;
  // Field 2, the name, may hold anything, spaces and ')' included: read from the last ')'.
  const size_t close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = split_words(std::string_view(*stat).substr(close + 1));
  if (fields.size() < 20) return std::nullopt;
  Process process;
  process.pid = pid;
  process.state = fields[0][0];
  process.parent = static_cast<pid_t>(parse_int(fields[1]).value_or(0));
  process.session = static_cast<pid_t>(parse_int(fields[3]).value_or(0));
  process.start_ticks = static_cast<uint64_t>(parse_int(fields[19]).value_or(0));
  return process;
}

std::vector<Process> list_processes() {
  std::vector<Process> table;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return table;
  while (const dirent* entry = readdir(folder)) {
    const std::optional<long> pid = parse_int(entry->d_name);
    if (!pid) continue;
    if (const auto process = read_process(static_cast<pid_t>(*pid))) table.push_back(*process);
  }
  closedir(folder);
  return table;
}

std::vector<Process> descendants(const std::vector<Process>& table, pid_t root) {
  std::multimap<pid_t, const Process*> children;
  for (const Process& process : table) children.emplace(process.parent, &process);
  std::vector<Process> found;
  std::vector<pid_t> frontier{root};
  while (!frontier.empty()) {
    const pid_t parent = frontier.back();
    frontier.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      frontier.push_back(child->second->pid);
      if (child->second->state != 'Z') found.push_back(*child->second);
    }
  }
  return found;
}

std::map<std::string, std::string> environment_of(pid_t pid) {
  std::map<std::string, std::string> environment;
  const Result<std::string> bytes =
      read_file("/proc/" + std::to_string(pid) + "/environ", 4U << 20U);
  if (!bytes) return environment;
  for (const std::string& pair : split(*bytes, '\0')) {
    const size_t equals = pair.find('=');
    if (equals != std::string::npos) environment[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return environment;
}

void kill_family(pid_t root) {
  if (root <= 1) return;
  // The root first: it must not see its children die and start others, or tell stories about it.
  const std::vector<Process> below = descendants(list_processes(), root);
  kill(root, SIGKILL);
  for (const Process& process : below) kill(process.pid, SIGKILL);
  kill_session(root, SIGKILL);
}

std::vector<Process> end_descendants(double limit_s) {
  const double end_s = monotonic_s() + limit_s;
  while (true) {
    std::vector<Process> left = descendants(list_processes(), getpid());
    if (left.empty() || monotonic_s() >= end_s) return left;
    for (const Process& process : left) kill(process.pid, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    usleep(2000);  // for the kernel to take them down; there is no event for a stranger's end
  }
}

int kill_session(pid_t session, int signal) {
  if (session <= 1) return 0;
  int reached = 0;
  for (const Process& process : list_processes()) {
    if (process.session == session && process.state != 'Z' && kill(process.pid, signal) == 0) {
      ++reached;
    }
  }
  return reached;
}

}  // namespace ezpz
