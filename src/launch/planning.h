// What every planner does: checks, the layout of ranks, the variables each rank gets.
#pragma once

#include <optional>
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

}  // namespace ezpz::launch
