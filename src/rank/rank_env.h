// What `ezpz rank -- CMD` sets before it becomes CMD: the variables an env:// PyTorch program
// reads, from whatever the launcher left. Pure.
#pragma once

#include <string>

#include "base/process.h"
#include "base/result.h"
#include "site/environment.h"

namespace ezpz::rank {

// RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT, EZPZ_NODE.
// PALS, PMI and Open MPI variables win over SLURM's, because a batch shell carries SLURM_PROCID=0.
// What the launcher does not tell is left as it is; not even a rank is an error (exit 2). hostname
// is this node's, for EZPZ_NODE.
Result<EnvChanges> map_rank_env(const site::Environment&, const std::string& hostname);

}  // namespace ezpz::rank
