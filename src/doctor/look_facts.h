// A node looked at from within, for what only a comparison with others can judge.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/process.h"
#include "doctor/node_report.h"

namespace ezpz::doctor {

struct FactsRequest {
  std::string node;                // what its caller calls it; empty: as own_node_name() finds it
  std::string job_id;              // processes of this job are not left over unless an attempt's
  std::vector<std::string> names;  // to look up, besides its own
  std::vector<std::string> paths;  // are they there?
  std::string version;             // of ezpz
};

// Ids of the attempts whose launcher (srun, mpiexec) lives on this host.
std::set<std::string> attempts_running_here();

// EZPZ_NODE, SLURMD_NODENAME or the host name.
std::string own_node_name();

// Everything but the times, which are the caller's: it knows when it began and when it answers.
NodeFacts look_at_facts(const FactsRequest&, const AskHelper&);

}  // namespace ezpz::doctor
