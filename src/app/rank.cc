// `ezpz rank -- CMD`: what srun starts on a node for each rank. Sets the variables of an env://
// program and becomes the command.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/process.h"
#include "rank/rank_env.h"
#include "site/environment.h"
#include "site/scheduler.h"

namespace ezpz::app {
namespace {

// In the words of slurmstepd, so that one pattern reads both.
int cannot_start(const std::string& program, int trouble) {
  write_all(2, "ezpz rank: error: execve(): " + program + ": " + strerrordesc_np(trouble) + "\n");
  return trouble == ENOENT ? 2 : 126;
}

}  // namespace

int run_rank(const Words& words) {
  const FlagTable table("ezpz rank -- CMD ...",
                        "Sets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, "
                        "MASTER_ADDR, MASTER_PORT and EZPZ_NODE from what the launcher left in the "
                        "environment, then becomes CMD.");
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> command = table.parse(words);
  if (!command) return usage_error(command.error().one_line());
  if (command->empty()) return usage_error("no command given (ezpz rank -- CMD ...)");
  const Result<EnvChanges> changes =
      rank::map_rank_env(site::current_environment(), site::own_hostname());
  if (!changes) {
    write_all(2, "ezpz rank: error: " + changes.error().one_line() + "\n");
    return kUsageError;
  }
  for (const auto& [name, value] : *changes) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  const std::string program = find_program(command->at(0));
  if (program.empty()) {
    return cannot_start(command->at(0), file_exists(command->at(0)) ? EACCES : ENOENT);
  }
  std::vector<char*> argv;
  std::vector<std::string> arguments = *command;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return cannot_start(program, errno);
}

}  // namespace ezpz::app
