// From any consistent part of -n, --ppn and --nhosts to ranks and hosts.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"

namespace ezpz::launch {

struct CountRequest {
  std::optional<long> ranks;           // -n
  std::optional<long> ranks_per_node;  // --ppn
  std::optional<long> hosts;           // --nhosts
  int available_hosts = 0;
  int gpus_per_node = 0;  // default for --ppn; 0: one rank a node
};

struct Counts {
  int ranks = 0;
  int ranks_per_node = 0;  // most on any one host
  int hosts = 0;
};

Result<Counts> resolve_counts(const CountRequest&);

// Ranks on each host: as even as possible, the first hosts take the rest, consecutive ranks
// together (3 over 2 hosts: 2, 1; 6 over 4: 2, 2, 1, 1). It is what srun --distribution=block does,
// and what `ezpz local-run` must do.
std::vector<int> ranks_on_hosts(int ranks, int hosts);

// CPUs for each rank: as asked (the job's --cpus-per-task) if that fits the node, else an equal
// share of it, rounded down to an even number where hardware threads come in pairs. 0 when unknown.
int cpus_per_rank(int cpus_per_node, int ranks_per_node, int asked);

}  // namespace ezpz::launch
