// Which rank this process is, and who the others are, from the environment. Readable as C++17.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace ezpz::train {

struct Place {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  int node = 0;
  int nodes = 1;
  std::string host;         // what this node is called; simulated nodes have their own names
  std::string master_addr;  // set when world > 1
  int master_port = 0;

  // "['nid001329'][device='cpu'][node=0/1][local_rank=0/3][rank=0/7]": the last of each, as in
  // "0/7", is the highest, as the Python tool prints it.
  [[nodiscard]] std::string banner() const;
};

// A process without a rank is a world of one. Damaged or partial variables are an error.
Result<Place> place_of(const std::map<std::string, std::string>& environment,
                       const std::string& hostname);

// The threads a rank should use: its part of the cores that this process may run on.
int threads_of(const Place&);

}  // namespace ezpz::train
