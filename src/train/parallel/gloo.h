// The ranks of a run over TCP, by PyTorch's gloo. Readable as C++17.
#pragma once

#include <memory>
#include <string>

#include "train/loop/place.h"
#include "train/parallel/comm.h"

namespace ezpz::train {

struct GlooLimits {
  int connect_s = 30;      // all ranks must have met by then
  int collective_s = 300;  // a peer that lives but does not answer; a dead one is noticed at once
  int disk_s = 3600;       // the same where a peer may be saving or exporting: world, saver
};

// The ranks as a mesh: neighbours in rank order are a tensor parallel group, as they are most
// likely to share a node; those of the same place in theirs are data-parallel. Of these, neighbours
// share one copy of the model's parts.
struct Groups {
  std::unique_ptr<Comm> world;
  std::unique_ptr<Comm> data;
  std::unique_ptr<Comm> shard;  // null: all data-parallel ranks share one copy
  std::unique_ptr<Comm> replicate;
  std::unique_ptr<Comm> tensor;
  std::unique_ptr<Comm> saver;  // all ranks again: for a thread that saves meanwhile
};

struct Division {
  int tensor = 1;  // ranks that divide each matrix
  int shard = 0;   // data-parallel ranks that share one copy; 0: all
};
// Why so many ranks cannot be divided like this; empty: they can.
std::string division_trouble(int ranks, const Division&);

Groups alone_groups();
// Meets the others at MASTER_ADDR:MASTER_PORT; throws PeersLost when they do not come.
Groups make_gloo(const Place&, const Division&, const GlooLimits& = {});

}  // namespace ezpz::train
