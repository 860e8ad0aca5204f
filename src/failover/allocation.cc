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
  if (spare_.empty()) return std::nullopt;
  return spare_.front();
}

std::vector<Node> Allocation::benched() const {
  std::vector<Node> benched;
  for (const Node& host : spare_) {
    const bool was_active =
        std::any_of(retirements_.begin(), retirements_.end(),
                    [&](const Retirement& retirement) { return retirement.host == host; });
    if (was_active) benched.push_back(host);
  }
  return benched;
}

Result<Node> Allocation::swap(std::string_view key, verdict::Provenance provenance, int attempt,
                              Kind kind) {
  const auto seat = find(active_, key);
  if (seat == active_.end()) {
    return Error{"not an active host, so it cannot be swapped", std::string(key), ""};
  }
  if (spare_.empty()) return Error{"no spare is left to swap in", std::string(key), ""};
  Node fresh = std::move(spare_.front());
  spare_.erase(spare_.begin());
  Node old = std::exchange(*seat, fresh);
  retirements_.push_back({old, provenance, attempt, kind, fresh, false, false});
  (provenance == verdict::Provenance::blind ? spare_ : retired_).push_back(std::move(old));
  return fresh;
}

bool Allocation::shrink(std::string_view key, verdict::Provenance provenance, int attempt,
                        Kind kind) {
  return active_.size() > 1 && retire_from(active_, key, provenance, attempt, kind);
}

void Allocation::note_loss(std::string_view key, verdict::Provenance provenance, int attempt,
                           Kind kind) {
  const auto found = find(active_, key);
  if (found == active_.end()) return;
  retirements_.push_back({*found, provenance, attempt, kind, {}, false, false});
}

bool Allocation::retire_spare(std::string_view key, verdict::Provenance provenance, int attempt,
                              Kind kind) {
  return retire_from(spare_, key, provenance, attempt, kind);
}

bool Allocation::retire_from(std::vector<Node>& list, std::string_view key,
                             verdict::Provenance provenance, int attempt, Kind kind) {
  const auto found = find(list, key);
  if (found == list.end()) return false;
  Node old = std::move(*found);
  list.erase(found);
  retirements_.push_back({old, provenance, attempt, kind, {}, false, false});
  retired_.push_back(std::move(old));
  return true;
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
