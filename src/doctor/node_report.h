// What `ezpz doctor-node` says of its node: the findings of its own checks, and facts that mean
// something only beside those of other nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "doctor/check.h"

namespace ezpz::doctor {

// A process of this user whose environment carries a job's or an attempt's id, and which is not a
// part of what looks at it.
struct Leftover {
  int pid = 0;
  std::string name;        // the program's, as the kernel has it
  std::string job_id;      // SLURM_JOB_ID, PBS_JOBID; empty: none
  std::string attempt_id;  // EZPZ_ATTEMPT_ID: "57.1a2b.2"; empty: none
  bool rank = false;       // a rank of the attempt, or started by one; else the launcher itself
};

struct NodeFacts {
  std::string node;       // who it says it is
  std::string hostname;   // gethostname()
  double began_s = 0;     // its wall clock when it began to look
  double answered_s = 0;  // and when it had
  std::string cwd;
  // Interface -> addresses; what is down and the loopback are left out.
  std::map<std::string, std::vector<std::string>> addresses;
  // Name -> addresses it resolves to here; empty: it does not. Names that nobody could be asked
  // about are left out.
  std::map<std::string, std::vector<std::string>> names;
  std::map<std::string, bool> sees;          // path -> is it there?
  std::map<std::string, std::string> alike;  // "kernel" -> what should be the same on every node
  std::vector<Leftover> leftovers;
  std::vector<std::string> socket_interfaces;  // what NCCL_ or GLOO_SOCKET_IFNAME is set to
};

struct NodeReport {
  NodeFacts facts;
  std::vector<Finding> findings;
};

Json to_json(const Finding&);
std::optional<Finding> finding_from(const Json&);

// One line of JSON in ASCII, bounded, and back. Nothing from what is not one.
std::string format_report(const NodeReport&);
std::optional<NodeReport> parse_report(std::string_view text);

}  // namespace ezpz::doctor
