#include "supervise/deaths.h"

#include <string.h>

#include "base/text.h"

namespace ezpz::supervise {

std::string describe_death(Exit exit) {
  if (exit.signal == 0) return "Exited with exit code " + std::to_string(exit.code);
  const char* name = sigdescr_np(exit.signal);
  return std::string(name != nullptr ? name : "Unknown signal") +
         (exit.core ? " (core dumped)" : "");
}

std::string ranks_phrase(const std::set<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") +
         ranges(std::vector<int>(ranks.begin(), ranks.end()));
}

void Deaths::add(const std::string& host, Exit exit, int rank) {
  const std::string how = describe_death(exit);
  for (Death& death : deaths_) {
    if (death.host == host && death.how == how) {
      death.ranks.insert(rank);
      return;
    }
  }
  deaths_.push_back({host, how, {rank}});
  if (deaths_.size() == 1) gather_ = loop_.after(kGather_s, [this] { tell(); });
}

void Deaths::tell() {
  loop_.cancel(gather_);
  for (const Death& death : deaths_) {
    say_("error: " + printable(death.host) + ": " + ranks_phrase(death.ranks) + ": " + death.how);
  }
  deaths_.clear();
}

}  // namespace ezpz::supervise
