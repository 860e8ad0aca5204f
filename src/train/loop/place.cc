#include "train/loop/place.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "rank/rank_env.h"

namespace ezpz::train {
namespace {

using Environment = std::map<std::string, std::string>;

Status read_number(const Environment& env, const char* name, long least, long most,
                   std::optional<int>* out) {
  const auto found = env.find(name);
  if (found == env.end() || found->second.empty()) return success();
  const std::optional<long> value = parse_int(found->second);
  if (!value || *value < least || *value > most) {
    return Error{"not a number from " + std::to_string(least) + " to " + std::to_string(most) +
                     ": '" + printable(found->second, 40) + "'",
                 name, "the launcher's variables are damaged"};
  }
  *out = static_cast<int>(*value);
  return success();
}

}  // namespace

std::string Place::banner() const {
  const auto of = [](int index, int count) {
    return std::to_string(index) + "/" + std::to_string(count - 1);
  };
  return "['" + printable(host, 80) + "'][device='cpu'][node=" + of(node, nodes) +
         "][local_rank=" + of(local_rank, local_world) + "][rank=" + of(rank, world) + "]";
}

Result<Place> place_of(const std::map<std::string, std::string>& environment,
                       const std::string& hostname) {
  Environment env = environment;
  if (!site::get(env, "RANK")) {
    // Not started by `ezpz rank` or torchrun: another launcher's own variables, if any.
    if (const auto mapped = rank::map_rank_env(env, hostname)) {
      for (const auto& [name, value] : *mapped) {
        if (value) env[name] = *value;
      }
    }
  }
  constexpr long kMost = 1 << 24;
  std::optional<int> rank, world, local_rank, local_world, node, port;
  struct Row {
    const char* name;
    long least;
    std::optional<int>* out;
  };
  for (const Row& row :
       {Row{"RANK", 0, &rank}, Row{"WORLD_SIZE", 1, &world}, Row{"LOCAL_RANK", 0, &local_rank},
        Row{"LOCAL_WORLD_SIZE", 1, &local_world}, Row{"NODE_RANK", 0, &node}}) {
    const Status read = read_number(env, row.name, row.least, kMost, row.out);
    if (!read) return read.error();
  }
  Place place;
  place.host = site::get(env, "EZPZ_NODE").value_or(hostname);
  if (rank && !world) {
    return Error{"RANK is set, WORLD_SIZE is not", "the environment", "set both or neither"};
  }
  if (!rank || !world) return place;
  if (*rank >= *world) {
    return Error{"rank " + std::to_string(*rank) + " of only " + std::to_string(*world),
                 "RANK, WORLD_SIZE", "variables of an outer launcher may have leaked in"};
  }
  place.rank = *rank;
  place.world = *world;
  place.local_rank = local_rank.value_or(0);
  place.local_world = std::max(local_world.value_or(1), place.local_rank + 1);
  place.node = node.value_or(place.rank / place.local_world);
  place.nodes = std::max((place.world + place.local_world - 1) / place.local_world, place.node + 1);
  if (place.world == 1) return place;
  const Status read = read_number(env, "MASTER_PORT", 1, 65535, &port);
  if (!read) return read.error();
  const auto address = site::get(env, "MASTER_ADDR");
  if (!address || !port) {
    return Error{std::to_string(place.world) + " ranks, and no meeting point",
                 "MASTER_ADDR, MASTER_PORT", "start it with `ezpz launch`, or set both"};
  }
  place.master_addr = *address;
  place.master_port = *port;
  return place;
}

int threads_of(const Place& place) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int cores = CPU_COUNT(&set);
  // A launcher that binds gives each rank cores of its own. One that does not leaves all to all.
  const bool bound = cores < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return bound ? std::max(1, cores) : std::max(1, cores / place.local_world);
}

}  // namespace ezpz::train
