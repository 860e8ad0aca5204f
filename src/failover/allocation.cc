#include "failover/allocation.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace ezpz::failover {
namespace {

using Hosts = std::vector<Node>;

Hosts::iterator find(Hosts& hosts, std::string_view key) {
  return std::find_if(hosts.begin(), hosts.end(),
                      [&](const Node& host) { return host.key == key; });
}

std::optional<Node> take(Hosts& hosts, std::string_view key) {
  const auto found = find(hosts, key);
  if (found == hosts.end()) return std::nullopt;
  Node host = std::move(*found);
  hosts.erase(found);
  return host;
}

std::optional<Node> take_first(Hosts& hosts) {
  if (hosts.empty()) return std::nullopt;
  Node host = std::move(hosts.front());
  hosts.erase(hosts.begin());
  return host;
}

}  // namespace

Result<Allocation> Allocation::split(std::vector<Node> hosts, size_t active_size) {
  if (active_size == 0) return Error{"no active hosts asked for", "--nhosts", "ask for at least 1"};
  if (hosts.size() < active_size) {
    return Error{"the allocation has " + std::to_string(hosts.size()) + " hosts, " +
                     std::to_string(active_size) + " are to be active",
                 "--nhosts", "ask for fewer, or for a larger allocation"};
  }
  std::set<std::string> keys;
  for (const Node& host : hosts) {
    if (!keys.insert(host.key).second) {
      return Error{"the same node twice in the host list", host.spelled, "list each node once"};
    }
  }
  Allocation allocation;
  const auto middle = hosts.begin() + static_cast<std::ptrdiff_t>(active_size);
  allocation.active_.assign(std::make_move_iterator(hosts.begin()),
                            std::make_move_iterator(middle));
  allocation.spare_.assign(std::make_move_iterator(middle), std::make_move_iterator(hosts.end()));
  return allocation;
}

std::optional<Node> Allocation::next_spare() const {
  if (!spare_.empty()) return spare_.front();
  if (!benched_.empty()) return benched_.front();
  return std::nullopt;
}

Result<Node> Allocation::swap(std::string_view key, verdict::Provenance provenance, int attempt,
                              Kind kind) {
  const auto seat = find(active_, key);
  if (seat == active_.end()) {
    return Error{"not an active host, so it cannot be swapped", std::string(key), ""};
  }
  std::optional<Node> fresh = take_first(spare_);
  if (!fresh) fresh = take_first(benched_);
  if (!fresh) return Error{"no spare is left to swap in", std::string(key), ""};
  Node old = std::exchange(*seat, *fresh);
  retirements_.push_back({old, provenance, attempt, kind, *fresh, false, false});
  (provenance == verdict::Provenance::blind ? benched_ : retired_).push_back(std::move(old));
  return *std::move(fresh);
}

Status Allocation::shrink(std::string_view key, verdict::Provenance provenance, int attempt,
                          Kind kind) {
  if (active_.size() == 1) {
    return Error{"the last active host cannot go without a spare", std::string(key), ""};
  }
  std::optional<Node> old = take(active_, key);
  if (!old) return Error{"not an active host, so it cannot be taken out", std::string(key), ""};
  retirements_.push_back({*old, provenance, attempt, kind, {}, false, false});
  retired_.push_back(*std::move(old));
  return success();
}

Status Allocation::retire_spare(std::string_view key, verdict::Provenance provenance, int attempt,
                                Kind kind) {
  std::optional<Node> old = take(spare_, key);
  if (!old) old = take(benched_, key);
  if (!old) return Error{"not a spare, so it cannot be retired as one", std::string(key), ""};
  retirements_.push_back({*old, provenance, attempt, kind, {}, false, false});
  retired_.push_back(*std::move(old));
  return success();
}

void Allocation::restore_benched() {
  spare_.insert(spare_.end(), std::make_move_iterator(benched_.begin()),
                std::make_move_iterator(benched_.end()));
  benched_.clear();
}

Retirement* Allocation::latest_retirement(std::string_view key) {
  const auto found =
      std::find_if(retirements_.rbegin(), retirements_.rend(),
                   [&](const Retirement& retirement) { return retirement.host.key == key; });
  return found == retirements_.rend() ? nullptr : &*found;
}

bool Allocation::mark_doubtful(std::string_view key) {
  Retirement* retirement = latest_retirement(key);
  if (retirement != nullptr) retirement->doubtful = true;
  return retirement != nullptr;
}

bool Allocation::mark_innocent(std::string_view key) {
  Retirement* retirement = latest_retirement(key);
  if (retirement != nullptr) retirement->innocent = true;
  return retirement != nullptr;
}

std::string Allocation::active_hostfile_text() const {
  std::string text;
  for (const Node& host : active_) text += host.spelled + '\n';
  return text;
}

std::string Allocation::bad_nodes_text() const {
  std::string text;
  for (const Retirement& each : retirements_) {
    text += each.host.spelled + "  " + std::string(to_string(each.provenance)) +
            "  attempt=" + std::to_string(each.attempt) +
            "  verdict=" + std::string(to_string(each.kind));
    if (each.doubtful) text += "  doubtful";
    if (each.innocent) text += "  innocent";
    text += '\n';
  }
  return text;
}

std::vector<std::string> Allocation::excluded() const { return spellings(retired_); }

}  // namespace ezpz::failover
