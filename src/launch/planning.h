// What every planner does: checks, the layout of ranks, the variables each rank gets.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/plan.h"

namespace ezpz::launch {

std::optional<Error> check_request(const Request&);

// A plan with everything but argv: hosts in rank order, ranks on them, environment.
Plan start_plan(const std::string& launcher, const Request&, const std::vector<Node>& rank_order);

// The excluded hosts a launcher must be told of: those of the allocation that are not active. A
// name the scheduler does not know is an error there, and so is a host both wanted and excluded.
std::vector<std::string> excluded_hosts(const Request&);

// What the planners of mpiexec have in common ------------------------------------------------

// The ranks of the launcher's i-th host, as it will fill them: with ranks_per_node on each until
// none is left. Equal to ranks_on_hosts() where the counts divide.
std::vector<int> filled_hosts(const Request&);

// start_plan(), with what ranks cannot learn from an mpiexec: where rank 0 is, and (unless the
// user's flags decide it) how many ranks each host has. No rank of an outer launcher shows through.
Plan start_mpi_plan(const std::string& launcher, const Request&, const std::vector<int>& counts);

// `PROGRAM FLAGS... [EZPZ rank --] CMD`.
void add_mpi_command(Plan&, const Request&);

// The names of the user's launcher flags, without dashes and values: "-np 4" and "--np=4" are "np",
// "-n4" is "n".
std::set<std::string> mpi_flags_in(const Argv& user_flags);
bool gave_any(const std::set<std::string>& given, const std::vector<std::string>& names);

// The user's flags that name hosts would undo a swap.
std::optional<Error> refuse_host_flags(const std::set<std::string>& given,
                                       const std::vector<std::string>& names);

// Everything the ranks need of our environment, by name and sorted: what is inherited, what the
// user set, what the plan sets.
std::vector<std::string> names_for_ranks(const Plan&, const Request&);

bool is_even(const Request&);  // ranks_per_node on every host

}  // namespace ezpz::launch
