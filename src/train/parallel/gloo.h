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

// Meets the others at MASTER_ADDR:MASTER_PORT; throws PeersLost when they do not come.
std::unique_ptr<Comm> make_gloo(const Place&, const GlooLimits& = {});

}  // namespace ezpz::train
