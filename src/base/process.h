// Starting processes. No shell anywhere: an argv in, a pid out.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exit.h"
#include "base/loop.h"
#include "base/result.h"

namespace ezpz {

using Argv = std::vector<std::string>;
// Variables to set (value) or to remove (nullopt) on top of the inherited environment.
using EnvChanges = std::map<std::string, std::optional<std::string>>;

struct SpawnSpec {
  Argv argv;  // argv[0] is looked up in PATH when it has no slash
  EnvChanges env;
  std::string cwd;     // empty: inherit
  int stdin_fd = -1;   // -1: /dev/null
  int stdout_fd = -1;  // -1: inherit
  int stderr_fd = -1;
  bool new_session = false;  // setsid: out of reach of the terminal's Ctrl-C and hang-up
  int parent_death_signal = 0;
};

// The pid, or why the program could not be started (exec's own errno comes back through a pipe, so
// "no such file" is known here and not guessed from exit code 127).
Result<pid_t> spawn(const SpawnSpec&);

// Forks a small helper that stays this program: it keeps only the descriptors `keep`, ignores the
// terminal's and the batch system's stop signals (it ends when its pipe closes), runs body and
// exits with what that returns. 0-2 become /dev/null unless they are kept: a helper that outlives
// us must not hold somebody's pipeline open. Call while the process has one thread.
Result<pid_t> fork_helper(const char* name, const std::vector<int>& keep,
                          const std::function<int()>& body);

// Where execvp would find the program; empty when nowhere. A name that was found is remembered:
// what is asked for in an emergency must not search a file system that has hung since. Ask for it
// early.
std::string find_program(const std::string& name);
// This binary's absolute path (/proc/self/exe).
std::string self_path();

// What a bounded external question came back with: scontrol, squeue, getent, ...
struct HelperResult {
  bool started = false;
  bool timed_out = false;
  Exit exit;
  std::string out;      // at most 16 MiB, the rest is read and dropped
  std::string err;      // at most 64 KiB
  std::string trouble;  // one line for the record when !usable()
  [[nodiscard]] bool usable() const { return started && !timed_out && exit.clean(); }
};

// Asks argv with a time limit; SIGKILL at the end of it. The callback always comes, exactly once,
// from the loop, and never later than timeout_s plus a moment: a helper that cannot be killed
// (D state) is abandoned, not awaited.
//
// A question dies with us; an action (scancel) that was begun is brought to its end.
enum class HelperKind { question, action };
void start_helper(Loop&, const Argv&, double timeout_s, std::function<void(HelperResult)>,
                  HelperKind kind = HelperKind::question);
// The same, waiting; the loop keeps running meanwhile.
HelperResult run_helper(Loop&, const Argv&, double timeout_s);

// The seam that site/ and probe/ ask through; tests give a table instead.
using AskHelper = std::function<HelperResult(const Argv&, double timeout_s)>;

}  // namespace ezpz
