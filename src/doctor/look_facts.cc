#include "doctor/look_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/node.h"
#include "base/proctable.h"
#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr double kLookup_s = 2;
constexpr size_t kMostAddresses = 64;
constexpr size_t kMostLeftovers = 200;

std::string own_hostname() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// What must not hold a whole table of processes up: a file that is not there is an empty one.
std::string first_line(const std::string& path) {
  const Result<std::string> text = read_file(path, 4096);
  if (!text) return "";
  return std::string(trim(text->substr(0, text->find('\n'))));
}

std::string os_name() {
  const Result<std::string> text = read_file("/etc/os-release", 65536);
  if (!text) return "";
  constexpr std::string_view kKey = "PRETTY_NAME=";
  for (const std::string& line : split_lines(*text)) {
    if (line.rfind(kKey, 0) != 0) continue;
    std::string value = line.substr(kKey.size());
    value.erase(std::remove(value.begin(), value.end(), '"'), value.end());
    return value;
  }
  return "";
}

std::map<std::string, std::string> what_should_be_alike(const std::string& version) {
  std::map<std::string, std::string> alike{{"ezpz", version}, {"operating system", os_name()}};
  utsname system{};
  if (uname(&system) == 0) alike["kernel"] = system.release;
  alike["CPUs"] = std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
  alike["NVIDIA driver"] = first_line("/sys/module/nvidia/version");
  alike["AMD GPU driver"] = first_line("/sys/module/amdgpu/version");
  alike["Lustre"] = first_line("/sys/fs/lustre/version");
  return alike;
}

std::map<std::string, std::vector<std::string>> own_addresses() {
  std::map<std::string, std::vector<std::string>> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  size_t count = 0;
  for (const ifaddrs* entry = list; entry != nullptr && count < kMostAddresses;
       entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if ((entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    const void* address = nullptr;
    if (entry->ifa_addr->sa_family == AF_INET) {
      address = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      address = &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    } else {
      continue;
    }
    if (inet_ntop(entry->ifa_addr->sa_family, address, text, sizeof text) == nullptr) continue;
    found[entry->ifa_name].emplace_back(text);
    ++count;
  }
  freeifaddrs(list);
  return found;
}

// Nothing when nobody could be asked; empty when the name is not known.
std::optional<std::vector<std::string>> look_up(const std::string& name, const AskHelper& ask) {
  constexpr int kNotFound = 2;
  if (is_ip_address(name)) return std::vector<std::string>{name};
  const HelperResult result = ask({"getent", "ahosts", name}, kLookup_s);
  if (!result.started || result.timed_out) return std::nullopt;
  if (result.exit.code == kNotFound) return std::vector<std::string>{};
  if (!result.exit.clean()) return std::nullopt;
  std::vector<std::string> addresses;
  for (const std::string& line : split_lines(result.out)) {
    std::string address = line.substr(0, line.find_first_of(" \t"));
    if (!is_ip_address(address) || addresses.size() >= kMostAddresses) continue;
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(std::move(address));
    }
  }
  return addresses;
}

// Us, what started us and what we started.
std::set<pid_t> own_family(const std::vector<Process>& table) {
  std::map<pid_t, pid_t> parents;
  for (const Process& process : table) parents[process.pid] = process.parent;
  std::set<pid_t> family{getpid()};
  for (const Process& child : descendants(table, getpid())) family.insert(child.pid);
  for (auto up = parents.find(getpid()); up != parents.end(); up = parents.find(up->second)) {
    if (!family.insert(up->second).second) break;
  }
  return family;
}

std::string value_of(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

// "local-4711.1a2b.1": an attempt on this machine whose ezpz, pid 4711, lives is running.
bool has_living_launcher(const std::string& attempt_id) {
  constexpr std::string_view kLocal = "local-";
  if (attempt_id.rfind(kLocal, 0) != 0) return false;
  const auto pid =
      parse_int(attempt_id.substr(kLocal.size(), attempt_id.find('.') - kLocal.size()));
  if (!pid || *pid <= 0) return false;
  return first_line("/proc/" + std::to_string(*pid) + "/comm") == "ezpz";
}

std::vector<Leftover> find_leftovers(const FactsRequest& request, const std::string& node) {
  const std::vector<Process> table = list_processes();
  const std::set<pid_t> family = own_family(table);
  const std::string hostname = own_hostname();
  std::vector<Leftover> found;
  for (const Process& process : table) {
    if (process.state == 'Z' || family.count(process.pid) != 0) continue;
    if (found.size() >= kMostLeftovers) break;
    const std::string folder = "/proc/" + std::to_string(process.pid);
    struct stat info {};
    if (stat(folder.c_str(), &info) != 0 || info.st_uid != geteuid()) continue;
    const auto environment = environment_of(process.pid);
    Leftover leftover;
    leftover.pid = process.pid;
    leftover.attempt_id = value_of(environment, "EZPZ_ATTEMPT_ID");
    leftover.job_id = value_of(environment, "SLURM_JOB_ID");
    if (leftover.job_id.empty()) leftover.job_id = value_of(environment, "PBS_JOBID");
    const bool marked = !leftover.attempt_id.empty() ||
                        (!leftover.job_id.empty() && leftover.job_id != request.job_id);
    if (!marked || has_living_launcher(leftover.attempt_id)) continue;
    // Several nodes of a laboratory share one process table.
    const std::string where = value_of(environment, "SLURMD_NODENAME");
    if (!where.empty() && where != node && where != hostname) continue;
    leftover.rank = environment.count("RANK") != 0 || environment.count("SLURM_PROCID") != 0 ||
                    environment.count("PMI_RANK") != 0 || environment.count("PALS_RANKID") != 0 ||
                    environment.count("OMPI_COMM_WORLD_RANK") != 0;
    leftover.name = first_line(folder + "/comm");
    found.push_back(std::move(leftover));
  }
  return found;
}

}  // namespace

std::string own_node_name() {
  for (const char* variable : {"EZPZ_NODE", "SLURMD_NODENAME"}) {
    const char* value = getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return own_hostname();
}

std::set<std::string> attempts_running_here() {
  std::set<std::string> found;
  for (const Process& process : list_processes()) {
    if (process.state == 'Z') continue;
    const auto environment = environment_of(process.pid);
    const std::string attempt = value_of(environment, "EZPZ_ATTEMPT_ID");
    if (!attempt.empty() && environment.count("RANK") == 0) found.insert(attempt);
  }
  return found;
}

NodeFacts look_at_facts(const FactsRequest& request, const AskHelper& ask) {
  NodeFacts facts;
  facts.hostname = own_hostname();
  facts.node = request.node.empty() ? own_node_name() : request.node;
  char folder[4096] = {};
  if (getcwd(folder, sizeof folder) != nullptr) facts.cwd = folder;
  facts.addresses = own_addresses();
  std::vector<std::string> names = request.names;
  names.push_back(facts.hostname);
  for (const std::string& name : names) {
    if (name.empty() || facts.names.count(name) != 0) continue;
    if (auto addresses = look_up(name, ask)) facts.names[name] = std::move(*addresses);
  }
  for (const std::string& path : request.paths) facts.sees[path] = file_exists(path);
  for (auto& [name, value] : what_should_be_alike(request.version)) {
    if (!value.empty()) facts.alike[name] = value;
  }
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const char* value = getenv(name);
    if (value != nullptr && *value != '\0') facts.socket_interfaces.emplace_back(value);
  }
  facts.leftovers = find_leftovers(request, facts.node);
  return facts;
}

}  // namespace ezpz::doctor
