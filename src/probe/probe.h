// A bounded look at nodes through the launcher: one step over all of them first, then each silent
// one alone, so that one dead node does not hide the others.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/node.h"
#include "base/process.h"
#include "probe/node_check.h"

namespace ezpz::probe {

// launcher: through an mpiexec, as ProbeSpec::beside says.
enum class Reach { srun, launcher, local };

struct ProbeSpec {
  Reach reach = Reach::local;
  std::vector<Node> hosts;
  std::string self_path;
  CheckRequest check;  // node is filled in for each host
  // The process that runs a command once on each of these hosts; only for Reach::launcher.
  std::function<Result<Argv>(const std::vector<Node>&, const Argv& command)> beside;
  bool overlap = true;            // srun: run beside whatever step holds the hosts
  double together_s = 8;          // for the one step over all hosts
  double alone_s = 8;             // for each host that did not answer there
  bool alone_tries = true;        // ask each host alone that did not answer in the step over all
  int at_once = 16;               // single probes in flight
  std::function<bool()> give_up;  // asked whenever something happens; may be empty
};

struct ProbeResult {
  std::map<std::string, CheckReport> answered;  // by host key
  std::map<std::string, std::string> refused;   // host key -> what the launcher said about it alone
  std::vector<std::string> silent;              // host keys that did not answer in time, twice
  bool ran = false;                             // false: the launcher could not be used at all
  bool given_up = false;                        // who did not answer was perhaps never asked
  std::string trouble;
};

// Runs the loop until done, out of time or given up.
ProbeResult run_probe(Loop&, const ProbeSpec&, const NodeNaming&);

// srun over these hosts, one task a node. Pure.
//
// Never with -c: that implies --exact, and after a lost node Slurm (22.05, seen) keeps the old
// step's cores on the surviving nodes for ever, so that an exact step waits without end. A step
// without -c and without --overlap starts at once and frees them; --overlap only gets past them.
Argv srun_check_argv(const std::vector<Node>& hosts, const std::string& self_path,
                     const CheckRequest&, bool overlap);
Argv local_check_argv(const Node& host, const std::string& self_path, const CheckRequest&);

}  // namespace ezpz::probe
