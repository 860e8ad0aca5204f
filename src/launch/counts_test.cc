#include "launch/counts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace ezpz::launch {
namespace {

// "ranks/per node/hosts", or the error.
std::string resolve(std::optional<long> n, std::optional<long> ppn, std::optional<long> hosts,
                    int available, int gpus) {
  const Result<Counts> counts = resolve_counts({n, ppn, hosts, available, gpus});
  if (!counts.ok()) return counts.error().one_line();
  return std::to_string(counts->ranks) + "/" + std::to_string(counts->ranks_per_node) + "/" +
         std::to_string(counts->hosts);
}

constexpr std::nullopt_t none = std::nullopt;

TEST(Counts, AnyConsistentPartIsEnough) {
  EXPECT_EQ(resolve(none, none, none, 4, 4), "16/4/4");
  EXPECT_EQ(resolve(none, none, none, 4, 0), "4/1/4");
  EXPECT_EQ(resolve(none, none, 2, 4, 4), "8/4/2");
  EXPECT_EQ(resolve(none, 2, none, 4, 4), "8/2/4");
  EXPECT_EQ(resolve(none, 2, 3, 4, 4), "6/2/3");
  EXPECT_EQ(resolve(8, none, none, 4, 4), "8/4/2");
  EXPECT_EQ(resolve(8, none, 4, 4, 4), "8/2/4");
  EXPECT_EQ(resolve(8, 4, none, 4, 0), "8/4/2");
  EXPECT_EQ(resolve(8, 4, 2, 4, 0), "8/4/2");
}

TEST(Counts, RanksNeedNotFillTheLastHost) {
  EXPECT_EQ(resolve(3, none, 2, 2, 0), "3/2/2");
  EXPECT_EQ(resolve(3, 2, none, 2, 0), "3/2/2");
  EXPECT_EQ(resolve(3, 2, 2, 2, 0), "3/2/2");
  EXPECT_EQ(resolve(5, 4, none, 2, 4), "5/3/2");
}

TEST(Counts, WithoutGpusRanksSpreadOverTheHostsThereAre) {
  EXPECT_EQ(resolve(4, none, none, 1, 0), "4/4/1");
  EXPECT_EQ(resolve(4, none, none, 2, 0), "4/2/2");
  EXPECT_EQ(resolve(2, none, none, 6, 0), "2/1/2");
}

TEST(Counts, ContradictionsAreOneSentence) {
  EXPECT_EQ(resolve(8, 4, 3, 4, 0),
            "8 ranks at --ppn 4 need 2 hosts, not --nhosts 3: -n (leave one of the three out)");
  EXPECT_EQ(resolve(6, 2, 2, 4, 0),
            "6 ranks at --ppn 2 need 3 hosts, not --nhosts 2: -n (leave one of the three out)");
  EXPECT_EQ(resolve(none, none, 5, 4, 0), "asks for 5 hosts and there are 4 hosts: --nhosts");
  EXPECT_EQ(
      resolve(12, none, none, 2, 4),
      "12 ranks at 4 a node need 3 hosts and there are 2 hosts: -n (raise --ppn or lower -n)");
  EXPECT_EQ(resolve(1, none, 2, 2, 0), "1 rank cannot fill 2 hosts: -n (lower --nhosts)");
  EXPECT_EQ(resolve(0, none, none, 2, 0), "must be between 1 and 1000000, not 0: -n");
  EXPECT_EQ(resolve(none, -2, none, 2, 0), "must be between 1 and 1000000, not -2: --ppn");
  EXPECT_EQ(resolve(none, none, 0, 2, 0), "must be between 1 and 1000000, not 0: --nhosts");
  EXPECT_NE(resolve(none, 1000000, none, 4, 0).find("more than"), std::string::npos);
  EXPECT_NE(resolve(1, none, none, 0, 0).find("no host"), std::string::npos);
}

TEST(Counts, RanksLieEvenlyInBlocks) {
  EXPECT_EQ(ranks_on_hosts(3, 2), (std::vector<int>{2, 1}));
  EXPECT_EQ(ranks_on_hosts(6, 4), (std::vector<int>{2, 2, 1, 1}));
  EXPECT_EQ(ranks_on_hosts(8, 2), (std::vector<int>{4, 4}));
  for (int hosts = 1; hosts < 9; ++hosts) {
    for (int ranks = hosts; ranks < 40; ++ranks) {
      const std::vector<int> counts = ranks_on_hosts(ranks, hosts);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), ranks);
      EXPECT_EQ(counts.front(), (ranks + hosts - 1) / hosts);
      EXPECT_GE(counts.back(), 1);
    }
  }
}

TEST(Counts, CpusOfARankAreAskedForOrAShare) {
  EXPECT_EQ(cpus_per_rank(128, 4, 0), 32);
  EXPECT_EQ(cpus_per_rank(128, 4, 16), 16);
  EXPECT_EQ(cpus_per_rank(128, 4, 128), 32);  // one fat task a node was asked for
  EXPECT_EQ(cpus_per_rank(16, 5, 0), 2);      // three threads would take two cores
  EXPECT_EQ(cpus_per_rank(15, 5, 0), 3);
  EXPECT_EQ(cpus_per_rank(2, 4, 0), 1);
  EXPECT_EQ(cpus_per_rank(0, 4, 0), 0);
  EXPECT_EQ(cpus_per_rank(0, 4, 8), 8);
}

}  // namespace
}  // namespace ezpz::launch
