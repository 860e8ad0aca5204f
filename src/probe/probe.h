// A bounded look at nodes through the launcher: does each start a program, and what of an attempt
// is left on it? ask_nodes.h does the asking.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/node.h"
#include "base/process.h"
#include "probe/ask_nodes.h"
#include "probe/node_check.h"

namespace ezpz::probe {

// As AskSpec, whose words these are.
struct ProbeSpec {
  Reach reach = Reach::local;
  std::vector<Node> hosts;
  std::string self_path;
  CheckRequest check;  // node is filled in for each host
  std::function<Result<Argv>(const std::vector<Node>&, const Argv& command)> beside;
  bool overlap = true;
  double together_s = 8;
  double alone_s = 8;
  bool alone_tries = true;
  int at_once = 16;
  std::function<bool()> give_up;
};

// As AskResult.
struct ProbeResult {
  std::map<std::string, CheckReport> answered;  // by host key
  std::map<std::string, std::string> refused;
  std::vector<std::string> silent;
  bool ran = false;
  bool given_up = false;
  std::string trouble;
};

// Runs the loop until done, out of time or given up.
ProbeResult run_probe(Loop&, const ProbeSpec&, const NodeNaming&);

// How the check is started on nodes under srun.
Argv srun_check_argv(const std::vector<Node>& hosts, const std::string& self_path,
                     const CheckRequest&, bool overlap);

}  // namespace ezpz::probe
