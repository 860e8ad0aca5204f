#include "evidence/topology.h"

#include <algorithm>

namespace ezpz::evidence {

void Topology::place(int rank, const std::string& host) {
  // The largest machines run fewer ranks; a log that claims more is not to be believed.
  constexpr size_t kMaxRanks = size_t{1} << 18;
  if (rank < 0 || host.empty()) return;
  if (host_of_rank_.size() >= kMaxRanks && !host_of_rank_.contains(rank)) return;
  host_of_rank_[rank] = host;
}

void Topology::set_world_size(int size) {
  if (size > 0) world_size_ = size;
}

std::optional<std::string> Topology::host_of(int rank) const {
  const auto found = host_of_rank_.find(rank);
  if (found == host_of_rank_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::pair<std::string, std::vector<int>>> Topology::hosts() const {
  std::vector<std::pair<std::string, std::vector<int>>> hosts;
  std::map<std::string, size_t> index;
  for (const auto& [rank, host] : host_of_rank_) {
    const auto [found, fresh] = index.try_emplace(host, hosts.size());
    if (fresh) hosts.emplace_back(host, std::vector<int>());
    hosts[found->second].second.push_back(rank);
  }
  return hosts;
}

}  // namespace ezpz::evidence
