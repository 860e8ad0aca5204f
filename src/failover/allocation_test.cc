#include "failover/allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace ezpz::failover {
namespace {

using verdict::Provenance;

Node host(const std::string& name) { return {name + ".hsn.example", name}; }

std::vector<Node> hosts(int count) {
  std::vector<Node> all;
  for (int i = 1; i <= count; ++i) all.push_back(host("nid" + std::to_string(i)));
  return all;
}

Allocation split(int count, size_t active) {
  Result<Allocation> allocation = Allocation::split(hosts(count), active);
  EXPECT_TRUE(allocation.ok());
  return std::move(allocation).operator*();
}

std::vector<std::string> keys(const std::vector<Node>& nodes) {
  std::vector<std::string> out;
  out.reserve(nodes.size());
  for (const Node& node : nodes) out.push_back(node.key);
  return out;
}

using Keys = std::vector<std::string>;

TEST(Allocation, TheFirstHostsAreActiveAndTheRestSpare) {
  const Allocation allocation = split(5, 3);
  EXPECT_EQ(keys(allocation.active()), (Keys{"nid1", "nid2", "nid3"}));
  EXPECT_EQ(keys(allocation.spare()), (Keys{"nid4", "nid5"}));
  EXPECT_EQ(allocation.next_spare()->key, "nid4");
}

TEST(Allocation, ASwapKeepsTheSeatOfTheHostThatLeaves) {
  Allocation allocation = split(4, 3);
  const Result<Node> fresh = allocation.swap("nid2", Provenance::scraped, 1, Kind::node_failure);
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(fresh->key, "nid4");
  EXPECT_EQ(keys(allocation.active()), (Keys{"nid1", "nid4", "nid3"}));
  EXPECT_EQ(keys(allocation.retired()), (Keys{"nid2"}));
  EXPECT_EQ(allocation.spares_left(), 0U);
}

TEST(Allocation, TextsAreInTheSchedulersSpelling) {
  Allocation allocation = split(3, 2);
  ASSERT_TRUE(allocation.swap("nid2", Provenance::scraped, 1, Kind::node_failure).ok());
  EXPECT_EQ(allocation.active_hostfile_text(), "nid1.hsn.example\nnid3.hsn.example\n");
  EXPECT_EQ(allocation.excluded(), (Keys{"nid2.hsn.example"}));
  EXPECT_EQ(allocation.bad_nodes_text(),
            "nid2.hsn.example  scraped  attempt=1  verdict=node_failure\n");
}

TEST(Allocation, ABlindSwapBenchesTheHostBehindTheOtherSpares) {
  Allocation allocation = split(4, 2);
  ASSERT_TRUE(allocation.swap("nid2", Provenance::blind, 2, Kind::hang).ok());
  EXPECT_EQ(keys(allocation.active()), (Keys{"nid1", "nid3"}));
  EXPECT_EQ(keys(allocation.spare()), (Keys{"nid4", "nid2"}));
  EXPECT_EQ(keys(allocation.benched()), (Keys{"nid2"}));
  EXPECT_TRUE(allocation.retired().empty());
  EXPECT_TRUE(allocation.excluded().empty());
  EXPECT_EQ(allocation.bad_nodes_text(), "nid2.hsn.example  blind  attempt=2  verdict=hang\n");
}

TEST(Allocation, ABenchedHostComesBackWhenNoOtherSpareIsLeft) {
  Allocation allocation = split(3, 2);
  ASSERT_TRUE(allocation.swap("nid2", Provenance::blind, 1, Kind::hang).ok());
  const Result<Node> back = allocation.swap("nid1", Provenance::scraped, 2, Kind::node_failure);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->key, "nid2");
  EXPECT_EQ(keys(allocation.active()), (Keys{"nid2", "nid3"}));
  EXPECT_TRUE(allocation.benched().empty());
}

TEST(Allocation, ASwapWithoutASpareIsAnErrorAndChangesNothing) {
  Allocation allocation = split(2, 2);
  EXPECT_FALSE(allocation.swap("nid1", Provenance::scraped, 1, Kind::node_failure).ok());
  EXPECT_EQ(keys(allocation.active()), (Keys{"nid1", "nid2"}));
  EXPECT_EQ(allocation.bad_nodes_text(), "");
}

TEST(Allocation, ASwapOfAHostThatIsNotActiveIsAnError) {
  Allocation allocation = split(3, 2);
  EXPECT_FALSE(allocation.swap("nid3", Provenance::scraped, 1, Kind::node_failure).ok());
  EXPECT_FALSE(allocation.swap("nid9", Provenance::scraped, 1, Kind::node_failure).ok());
  EXPECT_EQ(allocation.spares_left(), 1U);
}

TEST(Allocation, ADownSpareIsRetiredAndTheNextOneUsed) {
  Allocation allocation = split(4, 2);
  EXPECT_TRUE(allocation.retire_spare("nid3", Provenance::scheduler, 1, Kind::node_failure));
  EXPECT_FALSE(allocation.retire_spare("nid3", Provenance::scheduler, 1, Kind::node_failure));
  EXPECT_FALSE(allocation.retire_spare("nid1", Provenance::scheduler, 1, Kind::node_failure));
  EXPECT_EQ(allocation.next_spare()->key, "nid4");
  EXPECT_EQ(allocation.bad_nodes_text(),
            "nid3.hsn.example  scheduler  attempt=1  verdict=node_failure\n");
}

TEST(Allocation, SparesCanBeRetiredWhileTheirListIsWalked) {
  Allocation allocation = split(6, 2);
  for (const Node& spare : allocation.spare()) {
    EXPECT_TRUE(allocation.retire_spare(spare.key, Provenance::probed, 1, Kind::hang));
  }
  EXPECT_EQ(allocation.spares_left(), 0U);
  EXPECT_EQ(allocation.retired().size(), 4U);
}

TEST(Allocation, ShrinkingNeverTakesTheLastHost) {
  Allocation allocation = split(2, 2);
  EXPECT_TRUE(allocation.shrink("nid1", Provenance::scraped, 1, Kind::node_failure));
  EXPECT_FALSE(allocation.shrink("nid2", Provenance::scraped, 2, Kind::node_failure));
  EXPECT_EQ(keys(allocation.active()), (Keys{"nid2"}));
  EXPECT_EQ(keys(allocation.retired()), (Keys{"nid1"}));
}

TEST(Allocation, ALossThatEndsTheJobIsWrittenDownAndNothingMoves) {
  Allocation allocation = split(2, 2);
  allocation.note_loss("nid2", Provenance::scraped, 3, Kind::node_failure);
  allocation.note_loss("nid9", Provenance::scraped, 3, Kind::node_failure);
  EXPECT_EQ(allocation.bad_nodes_text(),
            "nid2.hsn.example  scraped  attempt=3  verdict=node_failure\n");
  EXPECT_EQ(keys(allocation.active()), (Keys{"nid1", "nid2"}));
  EXPECT_TRUE(allocation.retired().empty());
}

TEST(Allocation, ADoubtfulRetirementSaysSo) {
  Allocation allocation = split(5, 2);
  EXPECT_FALSE(allocation.mark_doubtful("nid1")) << "it was never taken out";
  ASSERT_TRUE(allocation.swap("nid1", Provenance::scraped, 1, Kind::node_failure).ok());
  ASSERT_TRUE(allocation.swap("nid2", Provenance::blind, 2, Kind::hang).ok());
  EXPECT_TRUE(allocation.mark_doubtful("nid1"));
  EXPECT_TRUE(allocation.mark_innocent("nid2"));
  EXPECT_FALSE(allocation.mark_doubtful("nid9"));
  EXPECT_EQ(allocation.bad_nodes_text(),
            "nid1.hsn.example  scraped  attempt=1  verdict=node_failure  doubtful\n"
            "nid2.hsn.example  blind  attempt=2  verdict=hang  innocent\n");
}

TEST(Allocation, TooFewHostsAnEmptyActiveSetAndTwinsAreRefused) {
  EXPECT_FALSE(Allocation::split(hosts(2), 3).ok());
  EXPECT_FALSE(Allocation::split(hosts(2), 0).ok());
  EXPECT_FALSE(Allocation::split({host("nid1"), {"nid1-hsn0", "nid1"}}, 1).ok());
}

// Random histories: no host is lost or in two places, the active size changes only by shrinking,
// and a retired host never comes back.
TEST(Allocation, NoHostIsEverLostOrInTwoPlaces) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](size_t n) {
      return std::uniform_int_distribution<size_t>(0, n - 1)(random);
    };
    const int total = static_cast<int>(2 + pick(9));
    size_t active_size = 1 + pick(static_cast<size_t>(total));
    Allocation allocation = split(total, active_size);
    std::set<std::string> retired_before;
    for (int attempt = 1; attempt <= 30; ++attempt) {
      const std::string key = "nid" + std::to_string(1 + pick(static_cast<size_t>(total) + 1));
      const auto provenance = static_cast<Provenance>(pick(6));
      switch (pick(4)) {
        case 0:
        case 1:
          (void)allocation.swap(key, provenance, attempt, Kind::node_failure);
          break;
        case 2:
          (void)allocation.retire_spare(key, provenance, attempt, Kind::node_failure);
          break;
        default:
          if (allocation.shrink(key, provenance, attempt, Kind::node_failure)) --active_size;
      }
      std::vector<std::string> everyone = keys(allocation.active());
      for (const auto& list : {allocation.spare(), allocation.retired()}) {
        for (const Node& node : list) everyone.push_back(node.key);
      }
      std::vector<std::string> expected = keys(hosts(total));
      std::sort(everyone.begin(), everyone.end());
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(everyone, expected) << "seed " << seed << " attempt " << attempt;
      ASSERT_EQ(allocation.active().size(), active_size);
      const std::vector<std::string> retired_keys = keys(allocation.retired());
      const std::set<std::string> retired(retired_keys.begin(), retired_keys.end());
      ASSERT_TRUE(std::includes(retired.begin(), retired.end(), retired_before.begin(),
                                retired_before.end()));
      retired_before = retired;
    }
  }
}

}  // namespace
}  // namespace ezpz::failover
