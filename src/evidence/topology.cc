#include "evidence/topology.h"

#include <algorithm>

namespace ezpz::evidence {
namespace {

// The largest machines run fewer ranks; a log that claims more is not to be believed.
constexpr size_t kMaxRanks = size_t{1} << 18;

bool acceptable(const std::map<int, std::string>& hosts, int rank, const std::string& host) {
  return rank >= 0 && !host.empty() && (hosts.size() < kMaxRanks || hosts.contains(rank));
}

}  // namespace

void Topology::place(int rank, const std::string& host) {
  if (acceptable(placed_, rank, host)) placed_[rank] = host;
}

void Topology::place_by_label(int rank, const std::string& host) {
  if (acceptable(labelled_, rank, host)) labelled_.try_emplace(rank, host);
}

void Topology::place_in_group(int rank, int size, const std::string& host) {
  if (rank >= size || size < group_size_ || !acceptable(group_, rank, host)) return;
  if (size > group_size_) {
    group_.clear();
    group_contradicts_itself_ = false;
    group_size_ = size;
  }
  const auto [known, fresh] = group_.try_emplace(rank, host);
  if (!fresh && known->second != host) group_contradicts_itself_ = true;
}

void Topology::set_world_size(int size) {
  if (size > 0) world_size_ = size;
}

bool Topology::group_is_the_job() const {
  // Every member: a few lines about ranks may be of some other job's log.
  if (group_.empty() || group_.size() != static_cast<size_t>(group_size_) ||
      group_contradicts_itself_)
    return false;
  if (world_size_) return *world_size_ == group_size_;
  return placed_.empty() || placed_.rbegin()->first < group_size_;
}

Topology::Hosts Topology::all() const {
  Hosts all = placed_;
  if (group_is_the_job()) all.insert(group_.begin(), group_.end());
  all.insert(labelled_.begin(), labelled_.end());
  return all;
}

bool Topology::empty() const { return placed_.empty() && labelled_.empty() && !group_is_the_job(); }

std::optional<std::string> Topology::host_of(int rank) const {
  if (const auto found = placed_.find(rank); found != placed_.end()) return found->second;
  if (group_is_the_job()) {
    if (const auto found = group_.find(rank); found != group_.end()) return found->second;
  }
  if (const auto found = labelled_.find(rank); found != labelled_.end()) return found->second;
  return std::nullopt;
}

std::vector<std::pair<std::string, std::vector<int>>> Topology::hosts() const {
  std::vector<std::pair<std::string, std::vector<int>>> hosts;
  std::map<std::string, size_t> index;
  for (const auto& [rank, host] : all()) {
    const auto [found, fresh] = index.try_emplace(host, hosts.size());
    if (fresh) hosts.emplace_back(host, std::vector<int>());
    hosts[found->second].second.push_back(rank);
  }
  return hosts;
}

}  // namespace ezpz::evidence
