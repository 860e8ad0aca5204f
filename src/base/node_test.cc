#include "base/node.h"

#include <gtest/gtest.h>

namespace ezpz {
namespace {

const NodeNaming sunspot = {{".hsn.*", ".hostmgmt#.*", ".cm.*"}, {"-hsn#"}};

TEST(Node, EverySpellingOfOneNodeHasOneKey) {
  for (const char* spelled : {
           "x1921c7s1b0n0",
           "X1921C7S1B0N0",
           " x1921c7s1b0n0\r",
           "x1921c7s1b0n0-hsn0",
           "x1921c7s1b0n0-hsn12",
           "x1921c7s1b0n0-hsn0.hsn.cm.sunspot.alcf.anl.gov",
           "x1921c7s1b0n0.hsn.cm.sunspot.alcf.anl.gov",
           "x1921c7s1b0n0.hostmgmt2001.cm.sunspot.alcf.anl.gov",
           "x1921c7s1b0n0.hostmgmt2001.cm.sunspot.alcf.anl.gov.",
       }) {
    EXPECT_EQ(node_key(spelled, sunspot), "x1921c7s1b0n0") << spelled;
  }
}

TEST(Node, OnlyWhatTheTableNamesIsTakenOff) {
  EXPECT_EQ(node_key("node1.rack2.site.gov", sunspot), "node1.rack2.site.gov");
  EXPECT_EQ(node_key("node1-ib0", sunspot), "node1-ib0");
  EXPECT_EQ(node_key("node1-hsn0.other.gov", sunspot), "node1.other.gov");
  EXPECT_EQ(node_key("nid001304-hsn0", NodeNaming{}), "nid001304-hsn0");
  EXPECT_EQ(node_key("node1.rack2.site.gov", NodeNaming{{".*"}, {}}), "node1");
  EXPECT_EQ(node_key("node-hsnx", sunspot), "node-hsnx");
}

TEST(Node, AnAddressIsNeverTouched) {
  const NodeNaming greedy = {{".*"}, {"-hsn#", "#"}};
  for (const char* address : {"10.0.0.1", "192.168.17.240", "fe80::1", "FE80::A", "::ffff:10.1.2.3",
                              "fe80::1%hsn0", "10.0.0.1:29500", "10.0.0"}) {
    EXPECT_EQ(node_key(address, greedy), address);
  }
}

TEST(Node, NothingIsEverStrippedToNothing) {
  const NodeNaming greedy = {{".*"}, {"*"}};
  EXPECT_EQ(node_key("", greedy), "");
  EXPECT_EQ(node_key(".", greedy), ".");
  EXPECT_FALSE(node_key("ab", greedy).empty());
  EXPECT_FALSE(node_key("-hsn0", sunspot).empty());
  EXPECT_FALSE(node_key(".hsn.cm.x", sunspot).empty());
}

TEST(Node, EqualityIgnoresTheSpellingAndTheSpellingIsKept) {
  const Node a = make_node("x1921c7s1b0n0-hsn0", sunspot);
  const Node b = make_node("x1921c7s1b0n0.hsn.cm.sunspot.alcf.anl.gov", sunspot);
  const Node c = make_node("x1921c7s1b0n1", sunspot);
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == c);
  EXPECT_EQ(spellings({a, b}),
            (std::vector<std::string>{"x1921c7s1b0n0-hsn0",
                                      "x1921c7s1b0n0.hsn.cm.sunspot.alcf.anl.gov"}));
}

TEST(Glob, MatchesTheWholeText) {
  EXPECT_TRUE(glob_match("nid#", "nid001304"));
  EXPECT_TRUE(glob_match("NID#", "nid1"));
  EXPECT_FALSE(glob_match("nid#", "nid"));
  EXPECT_FALSE(glob_match("nid#", "nid12x"));
  EXPECT_FALSE(glob_match("nid#", "xnid12"));
  EXPECT_TRUE(glob_match("x#c#s#b#n#", "x4117c1s2b0n0"));
  EXPECT_TRUE(glob_match("*.alcf.anl.gov", "a.b.alcf.anl.gov"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_TRUE(glob_match("login??", "login07"));
  EXPECT_FALSE(glob_match("login??", "login7"));
  EXPECT_TRUE(glob_match("#*#", "12"));
  EXPECT_FALSE(glob_match("#*#", "1"));
}

TEST(Glob, AHostilePatternCostsNoMoreThanItsLength) {
  EXPECT_FALSE(glob_match("*a*a*a*a*a*a*a*a*a*a*a*b", std::string(2000, 'a')));
}

}  // namespace
}  // namespace ezpz
