#include "launch/counts.h"

#include <algorithm>
#include <string>

namespace ezpz::launch {
namespace {

constexpr long max_ranks = 1'000'000;

long ceil_div(long a, long b) { return (a + b - 1) / b; }

std::string hosts_word(long n) { return std::to_string(n) + (n == 1 ? " host" : " hosts"); }

std::optional<Error> not_positive(const std::optional<long>& value, const char* flag) {
  if (!value || (*value >= 1 && *value <= max_ranks)) return std::nullopt;
  return Error{
      "must be between 1 and " + std::to_string(max_ranks) + ", not " + std::to_string(*value),
      flag, ""};
}

// Hosts that -n ranks take when --nhosts is not given.
long hosts_for(const CountRequest& request) {
  const long ranks = *request.ranks;
  if (request.ranks_per_node) return ceil_div(ranks, *request.ranks_per_node);
  if (request.gpus_per_node > 0) return ceil_div(ranks, request.gpus_per_node);
  return std::min<long>(ranks, request.available_hosts);
}

}  // namespace

Result<Counts> resolve_counts(const CountRequest& request) {
  for (const auto& error :
       {not_positive(request.ranks, "-n"), not_positive(request.ranks_per_node, "--ppn"),
        not_positive(request.hosts, "--nhosts")}) {
    if (error) return *error;
  }
  if (request.available_hosts < 1) {
    return Error{"there is no host to run on", "", "give --hostfile, or run inside a job"};
  }
  const long per_node =
      request.ranks_per_node.value_or(request.gpus_per_node > 0 ? request.gpus_per_node : 1);
  long hosts = request.hosts.value_or(request.available_hosts);
  if (request.ranks && !request.hosts) hosts = hosts_for(request);
  if (hosts > request.available_hosts) {
    const std::string have = hosts_word(request.available_hosts);
    if (request.hosts) {
      return Error{"asks for " + hosts_word(hosts) + " and there are " + have, "--nhosts", ""};
    }
    return Error{std::to_string(*request.ranks) + " ranks at " + std::to_string(per_node) +
                     " a node need " + hosts_word(hosts) + " and there are " + have,
                 "-n", "raise --ppn or lower -n"};
  }
  const long ranks = request.ranks.value_or(hosts * per_node);
  if (ranks > max_ranks) {
    return Error{"more than " + std::to_string(max_ranks) + " ranks", "--ppn", ""};
  }
  if (ranks < hosts) {
    return Error{std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + " cannot fill " +
                     hosts_word(hosts),
                 "-n", "lower --nhosts"};
  }
  if (request.ranks && request.ranks_per_node && request.hosts &&
      ceil_div(ranks, per_node) != hosts) {
    return Error{std::to_string(ranks) + " ranks at --ppn " + std::to_string(per_node) + " need " +
                     hosts_word(ceil_div(ranks, per_node)) + ", not --nhosts " +
                     std::to_string(hosts),
                 "-n", "leave one of the three out"};
  }
  return Counts{static_cast<int>(ranks), static_cast<int>(ceil_div(ranks, hosts)),
                static_cast<int>(hosts)};
}

std::vector<int> ranks_on_hosts(int ranks, int hosts) {
  if (hosts < 1) return {};
  std::vector<int> counts(static_cast<size_t>(hosts), ranks / hosts);
  for (int i = 0; i < ranks % hosts; ++i) ++counts[static_cast<size_t>(i)];
  return counts;
}

int cpus_per_rank(int cpus_per_node, int ranks_per_node, int asked) {
  if (cpus_per_node <= 0 || ranks_per_node <= 0) return std::max(asked, 0);
  // A job submitted as one fat task a node asks for all CPUs for each task; four of those fit on no
  // node.
  if (asked > 0 && static_cast<long>(asked) * ranks_per_node <= cpus_per_node) return asked;
  const int share = cpus_per_node / ranks_per_node;
  // Whole cores are given out: 3 of 16 threads take two cores, and five such ranks do not fit.
  if (share > 1 && share % 2 == 1 && cpus_per_node % 2 == 0) return share - 1;
  return std::max(share, 1);
}

}  // namespace ezpz::launch
