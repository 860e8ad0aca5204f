#include "probe/node_check.h"

#include <fmt/core.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/proctable.h"
#include "base/text.h"

namespace ezpz::probe {
namespace {

constexpr std::string_view kMark = "ezpz-node-check ";

std::string own_name() {
  for (const char* variable : {"EZPZ_NODE", "SLURMD_NODENAME"}) {
    const char* value = getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

bool tmp_works() {
  const char* folder = getenv("TMPDIR");
  std::string path = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") +
                     "/ezpz-node-check-XXXXXX";
  const Fd fd(mkstemp(path.data()));
  if (!fd) return false;
  constexpr std::string_view text = "ezpz";
  char back[text.size()] = {};
  const bool same = write_all(fd.get(), text) &&
                    pread(fd.get(), back, sizeof back, 0) == static_cast<ssize_t>(sizeof back) &&
                    std::string_view(back, sizeof back) == text;
  unlink(path.c_str());
  return same;
}

bool has_any(const std::map<std::string, std::string>& environment,
             std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return environment.contains(name); });
}

// Processes of the attempt on this node. Several simulated nodes (and a lab's) share one process
// table, so the node's name in their environment must be ours, where they carry one.
std::vector<Process> ranks_of(const std::string& attempt_id, const std::string& node) {
  char hostname[256] = {};
  gethostname(hostname, sizeof hostname - 1);
  std::vector<Process> found;
  for (const Process& process : list_processes()) {
    if (process.state == 'Z' || process.pid == getpid()) continue;
    const auto environment = environment_of(process.pid);
    const auto id = environment.find("EZPZ_ATTEMPT_ID");
    if (id == environment.end() || !id->second.starts_with(attempt_id)) continue;
    // The launcher itself (srun, local-run) carries the id too, but no node's name.
    bool here = false;
    for (const char* variable : {"EZPZ_NODE", "SLURMD_NODENAME"}) {
      const auto name = environment.find(variable);
      if (name != environment.end() && environment.contains("RANK"))
        here = here || name->second == node || name->second == hostname;
    }
    const auto slurm_node = environment.find("SLURMD_NODENAME");
    const bool step_task = environment.contains("SLURM_PROCID") && slurm_node != environment.end();
    here = here || (step_task && slurm_node->second == node);
    // A rank that an mpiexec started without `ezpz rank`.
    here = here || (!has_any(environment, {"EZPZ_NODE", "SLURMD_NODENAME"}) &&
                    has_any(environment, {"PALS_RANKID", "PMI_RANK", "OMPI_COMM_WORLD_RANK"}));
    if (here) found.push_back(process);
  }
  return found;
}

std::vector<Process> survivors_of(const std::string& attempt_id, const std::string& node) {
  std::vector<Process> found = ranks_of(attempt_id, node);
  // What they started may have another environment, or have written over it (setproctitle).
  const std::vector<Process> table = list_processes();
  for (size_t i = 0, named = found.size(); i < named; ++i) {
    for (const Process& child : descendants(table, found[i].pid)) {
      const bool known = std::any_of(found.begin(), found.end(), [&child](const Process& other) {
        return other.pid == child.pid;
      });
      if (!known && child.pid != getpid()) found.push_back(child);
    }
  }
  return found;
}

// The ranks themselves, not what they started: a data loader that gets SIGTERM takes its rank down.
void signal_ranks(const CheckRequest& request, const std::string& node) {
  const std::vector<Process> found = ranks_of(request.attempt_id, node);
  for (const Process& process : found) {
    const bool is_child = std::any_of(found.begin(), found.end(), [&](const Process& other) {
      return other.pid == process.parent;
    });
    if (!is_child) kill(process.pid, request.signal);
  }
}

}  // namespace

CheckReport check_node(const CheckRequest& request) {
  CheckReport report;
  report.node = request.node.empty() ? own_name() : request.node;
  report.tmp_ok = tmp_works();
  if (request.attempt_id.empty()) return report;
  if (request.signal != 0) {
    signal_ranks(request, report.node);
    return report;
  }
  const double limit_s = monotonic_s() + request.wait_s;
  std::vector<pid_t> seen;
  while (true) {
    const std::vector<Process> left = survivors_of(request.attempt_id, report.node);
    report.survivors.clear();
    for (const Process& process : left) {
      report.survivors.push_back(process.pid);
      if (std::find(seen.begin(), seen.end(), process.pid) == seen.end()) {
        seen.push_back(process.pid);
      }
      if (request.clear) kill(process.pid, SIGKILL);
    }
    if (left.empty() || monotonic_s() >= limit_s) break;
    usleep(20'000);
  }
  report.cleared = static_cast<int>(seen.size() - report.survivors.size());
  return report;
}

std::string format_report(const CheckReport& report) {
  std::vector<std::string> pids;
  for (const int pid : report.survivors) pids.push_back(std::to_string(pid));
  return fmt::format("{}node={} tmp={} cleared={} survivors={}", kMark, report.node,
                     report.tmp_ok ? "ok" : "bad", report.cleared,
                     pids.empty() ? "none" : join(pids, ","));
}

std::optional<CheckReport> parse_report(std::string_view line) {
  const size_t at = line.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  CheckReport report;
  bool complete = false;
  for (const std::string& word : split_words(line.substr(at + kMark.size()))) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (name == "node") report.node = value;
    if (name == "tmp") report.tmp_ok = value == "ok";
    if (name == "cleared") report.cleared = static_cast<int>(parse_int(value).value_or(0));
    if (name == "survivors") {
      complete = true;
      if (value == "none") continue;
      for (const std::string& pid : split(value, ',')) {
        const auto number = parse_int(pid);
        if (!number) return std::nullopt;
        report.survivors.push_back(static_cast<int>(*number));
      }
    }
  }
  if (!complete || report.node.empty()) return std::nullopt;
  return report;
}

}  // namespace ezpz::probe
