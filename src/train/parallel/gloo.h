// The ranks of a run over TCP, by PyTorch's gloo. Readable as C++17.
#pragma once

#include <memory>

#include "train/loop/place.h"
#include "train/parallel/comm.h"

namespace ezpz::train {

struct GlooLimits {
  int connect_s = 30;      // all ranks must have met by then
  int collective_s = 300;  // a peer that lives but does not answer; a dead one is noticed at once
};

// The ranks as a mesh: neighbours in rank order are a tensor parallel group, as they are most
// likely to share a node; those of the same place in theirs share the data-parallel shards.
struct Groups {
  std::unique_ptr<Comm> world;
  std::unique_ptr<Comm> data;
  std::unique_ptr<Comm> tensor;
};

// Meets the others at MASTER_ADDR:MASTER_PORT; throws PeersLost when they do not come. tp must
// divide the world.
Groups make_gloo(const Place&, int tp, const GlooLimits& = {});

}  // namespace ezpz::train
