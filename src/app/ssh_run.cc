// `ezpz ssh-run`: the ssh launcher as a process of its own; its flags are the contract with
// launch/ssh.cc. `ezpz ssh-node`: what it starts on each host.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"
#include "launch/counts.h"
#include "supervise/ssh_node.h"
#include "supervise/ssh_run.h"

namespace ezpz::app {
namespace {

// As the user sees it where that is true: behind a link, /home/me may be another path on each host.
std::string working_directory() {
  const char* named = getenv("PWD");
  struct stat by_name {};
  struct stat here {};
  if (named != nullptr && named[0] == '/' && stat(named, &by_name) == 0 && stat(".", &here) == 0 &&
      by_name.st_dev == here.st_dev && by_name.st_ino == here.st_ino) {
    return named;
  }
  char buffer[4096];
  return getcwd(buffer, sizeof buffer) != nullptr ? buffer : "";
}

}  // namespace

int run_ssh_run(const Words& words) {
  supervise::SshRun run;
  std::optional<long> ranks;
  std::optional<long> attempt;
  std::optional<long> port;
  std::vector<std::string> names;
  run.kill_on_bad_exit = false;
  FlagTable table("ezpz ssh-run --hosts=H,... --ranks=N --ssh=WORD ... [flags] -- CMD ...",
                  "Starts ranks on hosts, each reached by an ssh. Internal: ezpz launch uses it.");
  table.add_list({"--hosts"}, "H,...", "Hosts, in rank order.", &run.hosts);
  table.add_int({"--ranks"}, "N", "Ranks in all.", 1, &ranks);
  table.add_int({"--attempt"}, "N", "For the record.", 1, &attempt);
  table.add_int({"--master-port"}, "N", "Rendezvous port.", 0, &port);
  table.add_switch({"--kill-on-bad-exit"}, "The first bad end ends all.", &run.kill_on_bad_exit);
  table.add_list({"--env"}, "NAME,...", "Variables of ours that ranks are to have.", &names);
  table.add({{"--ssh"}, "WORD", "ssh and its flags, a word each.", [&run](std::string_view word) {
               run.ssh.emplace_back(word);
               return success();
             }});
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> command = table.parse(words);
  if (!command) return usage_error(command.error().one_line());
  const bool complete = !command->empty() && !run.hosts.empty() && !run.ssh.empty() && ranks &&
                        *ranks >= static_cast<long>(run.hosts.size());
  if (!complete) return usage_error(table.help());
  run.command = *command;
  run.master_port = static_cast<int>(port.value_or(0));
  run.ranks_on_host =
      launch::ranks_on_hosts(static_cast<int>(*ranks), static_cast<int>(run.hosts.size()));
  for (const std::string& name : names) {
    if (const char* value = getenv(name.c_str())) run.env[name] = value;
  }
  run.ezpz = self_path();
  run.folder = working_directory();
  return supervise::run_ssh(run);
}

int run_ssh_node(const Words& words) {
  const FlagTable table("ezpz ssh-node",
                        "Starts the ranks of one host as it is told on its input. Internal: ezpz "
                        "launch reaches hosts by ssh with it.");
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return usage_error(rest.error().one_line());
  if (!rest->empty()) return usage_error("ssh-node takes no arguments: " + rest->at(0));
  return supervise::run_ssh_node();
}

}  // namespace ezpz::app
