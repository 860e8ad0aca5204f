#include "doctor/node_sight.h"

namespace ezpz::doctor {

std::vector<Finding> check_node(const NodeSight& sight, const NodeContext& context) {
  std::vector<Finding> all;
  for (const auto check : {check_gpus, check_torch, check_network_plugin, check_mapped_nccl,
                           check_mpich_gtl, check_limits, check_known_issues}) {
    const std::vector<Finding> findings = check(sight, context);
    all.insert(all.end(), findings.begin(), findings.end());
  }
  return all;
}

}  // namespace ezpz::doctor
