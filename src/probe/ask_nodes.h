// A command once on every node, through the launcher and in bounded time: one step over all of them
// first, then each silent one alone, so that one dead node does not hide the others.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/node.h"
#include "base/process.h"

namespace ezpz::probe {

// launcher: through an mpiexec, as AskSpec::beside says.
enum class Reach { srun, launcher, local };

// What a node said of itself, found in what the launcher printed.
struct Said {
  std::string node;  // who says it, in whatever spelling
  std::string text;
};

struct AskSpec {
  Reach reach = Reach::local;
  std::vector<Node> hosts;
  // node: the name of the one host that is asked; empty where several are, who say it themselves.
  std::function<Argv(const std::string& node)> command;
  std::function<std::vector<Said>(const std::string& output)> read;
  // The process that runs a command once on each of these hosts; only for Reach::launcher.
  std::function<Result<Argv>(const std::vector<Node>&, const Argv& command)> beside;
  bool overlap = true;            // srun: run beside whatever step holds the hosts
  int gpus_per_node = 0;          // srun: devices the command is to see; 0: none are asked for
  double together_s = 8;          // for the one step over all hosts
  double alone_s = 8;             // for each host that did not answer there
  bool alone_tries = true;        // ask each host alone that did not answer in the step over all
  int at_once = 16;               // single questions in flight
  std::function<bool()> give_up;  // asked whenever something happens; may be empty
};

struct Answer {
  std::string text;
  double asked_s = 0;     // wall clock here, before the launcher was started
  double answered_s = 0;  // and when all it printed had come
};

struct AskResult {
  std::map<std::string, Answer> answered;      // by host key
  std::map<std::string, std::string> refused;  // host key -> what the launcher said about it alone
  std::vector<std::string> silent;             // host keys that did not answer in time, twice
  bool ran = false;                            // false: the launcher could not be used at all
  bool given_up = false;                       // who did not answer was perhaps never asked
  std::string trouble;
};

// Runs the loop until done, out of time or given up.
AskResult ask_nodes(Loop&, const AskSpec&, const NodeNaming&);

// srun over these hosts, one task a node. Pure.
//
// Never with -c: that implies --exact, and after a lost node Slurm (22.05, seen) keeps the old
// step's cores on the surviving nodes for ever, so that an exact step waits without end. A step
// without -c and without --overlap starts at once and frees them; --overlap only gets past them.
Argv srun_argv(const std::vector<Node>& hosts, const Argv& command, bool overlap,
               int gpus_per_node = 0);

}  // namespace ezpz::probe
