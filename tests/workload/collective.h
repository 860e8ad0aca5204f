// The ranks' sum: a star around rank 0. A step ends only when every rank has taken part, so a dead
// or cut-off peer stops all of them, as it stops an all-reduce.
#pragma once

#include <string>
#include <vector>

#include "workload/model.h"
#include "workload/options.h"

namespace toy {

class Collective {
 public:
  Collective() = default;
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // Returns when all ranks of this attempt have met; otherwise `trouble` says why not. Strangers
  // (another attempt's rank, a port scanner) are turned away.
  bool meet(const Identity&, double timeout_s, std::string* trouble);

  // value becomes the sum over all ranks, added in rank order. False: a peer is gone.
  bool all_reduce(Vector* value);
  // model becomes rank 0's. False: a peer is gone.
  bool broadcast(Model* model);

 private:
  bool listen_for_peers(double deadline_s, std::string* trouble);
  bool join_rank_0(double deadline_s, std::string* trouble);

  Identity me_;
  int socket_ = -1;         // to rank 0
  std::vector<int> peers_;  // rank 0: by rank; -1 not (yet) there
};

}  // namespace toy
