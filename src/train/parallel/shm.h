// Collectives through memory that the ranks of one node share: half the copies of a socket. Every
// wait watches the peers: each holds a lock in the file that the kernel drops when it dies,
// whatever kills it and whatever namespace it is in. Readable as C++17.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "train/parallel/comm.h"

namespace ezpz::train {

struct ShmLimits {
  double answer_s = 300;  // a peer that lives but does not come to a collective
};

// Rank 0 creates the file first. The others open it; nothing when it is not there, which means that
// the ranks do not share a node. The name may be unlinked once all have it open.
bool create_shm_file(const std::string& path, int ranks);
std::unique_ptr<Comm> open_shm(const std::string& path, int rank, int ranks, const ShmLimits& = {});

// Moves a group to shared memory when all of its ranks are on the node of that identity; the group
// as it was otherwise. Collective: every rank must call it. The given group is kept for what shared
// memory does not do (send, receive).
std::unique_ptr<Comm> over_shm(std::unique_ptr<Comm> group, const std::string& node_identity);

}  // namespace ezpz::train
