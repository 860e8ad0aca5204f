#include "launch/planning.h"

#include <algorithm>
#include <map>
#include <set>

#include "launch/counts.h"

namespace ezpz::launch {

std::optional<Error> check_request(const Request& request) {
  if (request.command.empty() || request.command[0].empty()) {
    return Error{"there is no command to run", "", "ezpz launch [flags] -- CMD ..."};
  }
  if (request.hosts.empty()) return Error{"there is no host to run on", "", ""};
  std::set<std::string> keys;
  for (const Node& host : request.hosts) {
    if (!keys.insert(host.key).second) return Error{"a host is listed twice", host.spelled, ""};
  }
  if (request.ranks < static_cast<int>(request.hosts.size())) {
    return Error{"fewer ranks than hosts",
                 std::to_string(request.ranks) + " over " + std::to_string(request.hosts.size()),
                 ""};
  }
  if (request.rank_env && (request.self_path.empty() || request.self_path[0] != '/')) {
    return Error{"the path of ezpz on the nodes is unknown", request.self_path,
                 "use --no-rank-env to start the command directly"};
  }
  return std::nullopt;
}

Plan start_plan(const std::string& launcher, const Request& request,
                const std::vector<Node>& rank_order) {
  Plan plan;
  plan.launcher = launcher;
  plan.host_order = spellings(rank_order);
  const std::vector<int> counts =
      ranks_on_hosts(request.ranks, static_cast<int>(rank_order.size()));
  int rank = 0;
  for (size_t host = 0; host < rank_order.size(); ++host) {
    for (int i = 0; i < counts[host]; ++i) plan.host_of_rank[rank++] = plan.host_order[host];
  }
  plan.master_addr = plan.host_order.front();
  plan.master_port = request.master_port;

  plan.env = request.user_env;
  plan.env["EZPZ_ATTEMPT"] = std::to_string(request.attempt);
  plan.env["EZPZ_ATTEMPT_ID"] = request.attempt_id;
  // An outer ezpz's choice must not be mistaken for ours.
  plan.env["EZPZ_MASTER_ADDR"] = std::nullopt;
  plan.env["EZPZ_MASTER_PORT"] = std::nullopt;
  plan.env["EZPZ_RANKS_PER_NODE"] = std::nullopt;
  if (request.master_port > 0) plan.env["EZPZ_MASTER_PORT"] = std::to_string(request.master_port);
  return plan;
}

std::vector<std::string> excluded_hosts(const Request& request) {
  std::set<std::string> active;
  for (const Node& node : request.hosts) active.insert(node.key);
  std::set<std::string> unwanted;
  for (const Node& node : request.excluded) unwanted.insert(node.key);
  std::vector<std::string> names;
  for (const Node& known : request.allocation) {
    if (unwanted.count(known.key) != 0 && active.count(known.key) == 0) {
      names.push_back(known.spelled);
    }
  }
  return names;
}

std::vector<Node> slurm_node_order(const std::vector<Node>& hosts,
                                   const std::vector<Node>& allocation) {
  std::map<std::string, size_t> position;
  for (size_t i = 0; i < allocation.size(); ++i) position.emplace(allocation[i].key, i);
  std::vector<std::pair<size_t, Node>> ordered;
  for (const Node& host : hosts) {
    const auto known = position.find(host.key);
    ordered.emplace_back(known != position.end() ? known->second : allocation.size(), host);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Node> order;
  order.reserve(ordered.size());
  for (auto& [at, node] : ordered) order.push_back(std::move(node));
  return order;
}

}  // namespace ezpz::launch
