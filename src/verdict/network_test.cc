#include "verdict/network.h"

#include <gtest/gtest.h>

#include "verdict/testing.h"

namespace ezpz::verdict {
namespace {

Fact uses(const std::string& name, const std::string& host) {
  Fact f = testing::fact(Event::network, Kind::unknown, Role::context, "nccl.network", name);
  f.reason = name;
  f.label = host;
  return f;
}

const NetworkWish kWish{"AWS Libfabric", false, "", ""};

TEST(Network, ANameIsTheSameInAnyCaseAndWithOrWithoutItsVendor) {
  EXPECT_TRUE(same_network("AWS Libfabric", "aws libfabric"));
  EXPECT_TRUE(same_network("Libfabric", "AWS Libfabric"));
  EXPECT_FALSE(same_network("Socket", "AWS Libfabric"));
  EXPECT_FALSE(same_network("fabric", "AWS Libfabric"));
  EXPECT_FALSE(same_network("", "AWS Libfabric"));
}

TEST(Network, EachHostCountsOnceUnderItsKey) {
  const auto found = uses_of(Event::network,
                             {uses("Socket", "n1"), uses("Socket", "n1-hsn0"), uses("IB", "n2"),
                              uses("Socket", "n3.site.example")},
                             testing::key_of);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].hosts, (std::vector<std::string>{"n1", "n3"}));
  EXPECT_EQ(found[1].name, "IB");
}

TEST(Network, NothingIsWrongWithoutAnExpectationOrAWord) {
  EXPECT_FALSE(wrong_network({}, {uses("Socket", "n1")}, testing::key_of));
  EXPECT_FALSE(wrong_network(kWish, {}, testing::key_of));
  EXPECT_FALSE(wrong_network(kWish, {uses("Libfabric", "n1")}, testing::key_of));
}

TEST(Network, OneHostThatDiffersFromItsPeersIsAloneAndTwoOrAllAreNot) {
  const Fact good = uses("AWS Libfabric", "n1");
  const auto one = wrong_network(kWish, {good, uses("Socket", "n2")}, testing::key_of);
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->one_alone());
  EXPECT_NE(in_words(*one, kWish).find("n2 alone"), std::string::npos);
  const auto two =
      wrong_network(kWish, {good, uses("Socket", "n2"), uses("Socket", "n3")}, testing::key_of);
  EXPECT_FALSE(two->one_alone());
  EXPECT_FALSE(wrong_network(kWish, {uses("Socket", "n2")}, testing::key_of)->one_alone());
}

TEST(Network, AHostThatNamesBothIsOnTheWrongOne) {
  const auto wrong = wrong_network(kWish, {uses("AWS Libfabric", "n1"), uses("tcp;ofi_rxm", "n1")},
                                   testing::key_of);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->hosts, std::vector<std::string>{"n1"});
  EXPECT_TRUE(wrong->right.empty());
}

}  // namespace
}  // namespace ezpz::verdict
