// How our own launchers tell that ranks died: one line a host and way, as srun does, so that one
// way of attribution serves all. "error: HOST: ranks 2-3: Killed".
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/exit.h"
#include "base/loop.h"

namespace ezpz::supervise {

std::string describe_death(Exit);
std::string ranks_phrase(const std::set<int>&);  // "rank 3", "ranks 0-1,5"

class Deaths {
 public:
  // Deaths this close together are told in one line a host.
  static constexpr double kGather_s = 0.03;

  using Say = std::function<void(const std::string& line)>;
  Deaths(Loop& loop, Say say) : loop_(loop), say_(std::move(say)) {}

  void add(const std::string& host, Exit, int rank);
  void tell();  // now

 private:
  struct Death {
    std::string host;
    std::string how;
    std::set<int> ranks;
  };

  Loop& loop_;
  Say say_;
  std::vector<Death> deaths_;  // in the order hosts were first hit
  Loop::TimerId gather_ = 0;
};

}  // namespace ezpz::supervise
