// Would `ezpz launch` start here, and do the nodes see what it starts?
#include <algorithm>
#include <array>

#include "base/text.h"
#include "doctor/check_job.h"
#include "doctor/text_of_hosts.h"

namespace ezpz::doctor {
namespace {

Finding of_error(const char* check, const Error& error, const std::string& remedy) {
  std::string why = error.what;
  if (!error.where.empty()) why += ": " + error.where;
  return {check, Health::error, printable(why), error.hint.empty() ? remedy : printable(error.hint),
          ""};
}

bool is_below(const std::string& path, std::string_view folder) {
  return path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
         path[folder.size()] == '/';
}

// Folders that are nearly everywhere a node's own.
bool is_a_nodes_own(const std::string& path) {
  constexpr std::array<std::string_view, 4> folders = {"/tmp", "/dev/shm", "/run", "/var/tmp"};
  return std::any_of(folders.begin(), folders.end(),
                     [&](std::string_view folder) { return is_below(path, folder); });
}

}  // namespace

Findings check_launcher(const JobSight& sight) {
  constexpr const char* kName = "launcher";
  const LaunchSight& launch = sight.launch;
  if (launch.launcher_error) {
    return {of_error(kName, *launch.launcher_error, "load the module that has the launcher")};
  }
  const std::string& expected = sight.machine.launcher;
  const bool remote = sight.job.in_job() || sight.hostfile.has_value();
  std::string text = launch.launcher;
  if (!launch.program.empty()) text += ": " + printable(launch.program, 200);
  if (remote && sight.machine_known && !expected.empty() && launch.launcher != expected) {
    return {{kName, Health::warning,
             "ranks would be started by " + text + ", but " + sight.machine.title + " expects " +
                 expected,
             "leave --launcher out, or load the module that has " + expected, ""}};
  }
  if (launch.launcher == "local") {
    text += remote ? ": every rank on this host" : ": on this machine";
  }
  return {{kName, Health::ok, text, "", ""}};
}

Findings check_launch_plan(const JobSight& sight) {
  if (!sight.launch.plan_error) {
    if (sight.launch.plan.empty()) return {};
    return {{"launch-plan", Health::ok, "ezpz launch would start " + sight.launch.plan, "", ""}};
  }
  return {of_error("launch-plan", *sight.launch.plan_error, "see ezpz launch --help")};
}

Findings check_binary(const JobSight& sight) {
  constexpr const char* kName = "binary";
  const bool many = sight.launch.pool.size() > 1 && sight.launch.launcher != "local";
  // The nodes themselves say whether they could start it.
  if (!many || sight.nodes_were_asked) return {};
  const BinarySight& binary = sight.binary;
  const std::string path = printable(binary.path, 200);
  if (binary.in_memory || is_a_nodes_own(binary.path)) {
    return {{kName, Health::warning,
             path +
                 (binary.in_memory ? " lies in this host's memory (" + binary.file_system + ")"
                                   : " lies where every node has files of its own") +
                 ": the others may not have it",
             "install ezpz on a file system that all nodes see, or ask them: ezpz doctor "
             "--all-nodes",
             ""}};
  }
  return {{kName, Health::ok,
           path + (binary.file_system.empty() ? "" : " on " + binary.file_system), "", ""}};
}

}  // namespace ezpz::doctor
