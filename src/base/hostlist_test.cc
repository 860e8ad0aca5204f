#include "base/hostlist.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace ezpz {
namespace {

using Hosts = std::vector<std::string>;

Hosts expand(std::string_view list) {
  const auto hosts = expand_hostlist(list);
  if (!hosts.ok()) {
    ADD_FAILURE() << list << ": " << hosts.error().one_line();
    return {};
  }
  return *hosts;
}

// Each of these is what `scontrol show hostnames` of SLURM 22.05 prints.
TEST(Hostlist, ExpandsWhatScontrolExpandsInTheSameOrder) {
  const std::pair<const char*, Hosts> cases[] = {
      {"", {}},
      {"nid001304", {"nid001304"}},
      {"nid[001304-001306,001309],login01",
       {"nid001304", "nid001305", "nid001306", "nid001309", "login01"}},
      {"rack[1-2]n[01-03]",
       {"rack1n01", "rack1n02", "rack1n03", "rack2n01", "rack2n02", "rack2n03"}},
      {"a[1-2][3-4]", {"a13", "a14", "a23", "a24"}},
      {"a[1,1,2-3]", {"a1", "a1", "a2", "a3"}},
      {"a[8-11]", {"a8", "a9", "a10", "a11"}},
      {"a[08-11]", {"a08", "a09", "a10", "a11"}},
      {"a[00-2]", {"a00", "a01", "a02"}},
      {"a[01-1]", {"a01"}},
      {"a[99-101]", {"a99", "a100", "a101"}},
      {"a[0000000001-0000000002]", {"a0000000001", "a0000000002"}},
      {"[1-3]", {"1", "2", "3"}},
      {"a,,b", {"a", "b"}},
      {" a , b ", {"a", "b"}},
      {"a\nb\n", {"a", "b"}},
  };
  for (const auto& [list, hosts] : cases) EXPECT_EQ(expand(list), hosts) << list;
}

TEST(Hostlist, KeepsTextAfterABracket) {
  EXPECT_EQ(expand("nid[1-2]-hsn0"), (Hosts{"nid1-hsn0", "nid2-hsn0"}));
  EXPECT_EQ(expand("a[1-2]b[3]c"), (Hosts{"a1b3c", "a2b3c"}));
  EXPECT_EQ(expand("n[1, 3 - 4].site,x"), (Hosts{"n1.site", "n3.site", "n4.site", "x"}));
}

TEST(Hostlist, SaysWhereAMalformedListIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"a[1-2", "position 2"},
      {"a[", "position 3"},
      {"a]", "position 2"},
      {"a[]", "position 3"},
      {"a[3-1]", "position 3"},
      {"a[x-y]", "position 3"},
      {"a[1-]", "position 5"},
      {"a[-1]", "position 3"},
      {"a[1,,2]", "position 5"},
      {"b,a[1,2]]", "position 9"},
      {"a[1[2]]", "position 4"},
      {"a\x01"
       "b",
       "position 2"},
  };
  for (const auto& [list, where] : cases) {
    const auto hosts = expand_hostlist(list);
    ASSERT_FALSE(hosts.ok()) << list;
    EXPECT_EQ(hosts.error().where, where) << list << ": " << hosts.error().what;
  }
}

TEST(Hostlist, RefusesListsThatWouldFillTheMemory) {
  EXPECT_EQ(expand("a[1-65536]").size(), 65536U);
  EXPECT_FALSE(expand_hostlist("a[1-65537]").ok());
  EXPECT_FALSE(expand_hostlist("a[1-65536],b").ok());
  EXPECT_FALSE(expand_hostlist("a[0-999999999999999999]").ok());
  EXPECT_FALSE(expand_hostlist("a[99999999999999999999]").ok());
  EXPECT_FALSE(expand_hostlist("a[1-999][1-999][1-999][1-999][1-999][1-999][1-999][1-999]").ok());
  EXPECT_FALSE(expand_hostlist(std::string(300, 'x')).ok());
  std::string many = "a[";
  for (int i = 0; i < 70000; ++i) many += "1,";
  EXPECT_FALSE(expand_hostlist(many + "1]").ok());
}

TEST(Hostlist, CompressesAsScontrolDoes) {
  const std::pair<Hosts, const char*> cases[] = {
      {{}, ""},
      {{"a"}, "a"},
      {{"a1"}, "a1"},
      {{"a1", "a2", "a3", "b01", "b02", "a1", "a2"}, "a[1-3],b[01-02],a[1-2]"},
      {{"rack1n1", "rack1n2", "rack2n1", "rack2n2"}, "rack1n[1-2],rack2n[1-2]"},
      {{"nid1-hsn0", "nid2-hsn0"}, "nid1-hsn0,nid2-hsn0"},
      {{"n9", "n10", "n011", "n012"}, "n[9-10,011-012]"},
      {{"n09", "n10"}, "n[09-10]"},
      {{"n3", "n1"}, "n[3,1]"},
      {{"1", "2"}, "[1-2]"},
      {{"a", "a"}, "a,a"},
  };
  for (const auto& [hosts, list] : cases) EXPECT_EQ(compress_hostlist(hosts), list);
}

TEST(Hostlist, ExpandingACompressedListGivesTheSameHostsInTheSameOrder) {
  std::mt19937 random(20261129);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* prefixes[] = {"n", "nid", "rack1n", "x3005c0s7b", "", "a-", "login"};
  const char* suffixes[] = {"", "", "", "", "-hsn0", ".site.gov", "b"};
  for (int round = 0; round < 4000; ++round) {
    Hosts hosts;
    const int groups = 1 + pick(5);
    for (int g = 0; g < groups; ++g) {
      const std::string prefix = prefixes[pick(7)];
      const std::string suffix = suffixes[pick(7)];
      const int width = pick(6);
      int value = pick(3) == 0 ? 95 + pick(10) : pick(1200);
      const int length = 1 + pick(12);
      for (int i = 0; i < length; ++i) {
        std::string digits = std::to_string(value);
        if (static_cast<int>(digits.size()) < width) digits.insert(0, width - digits.size(), '0');
        if (pick(20) == 0) digits = std::string(static_cast<size_t>(17 + pick(4)), '9');
        std::string host = prefix;
        host += digits;
        host += suffix;
        hosts.push_back(host);
        value += pick(4) == 0 ? pick(5) : 1;
      }
    }
    const std::string list = compress_hostlist(hosts);
    ASSERT_EQ(expand(list), hosts) << list;
  }
}

TEST(Hostlist, RandomTextIsExpandedOrRefusedNeverMore) {
  std::mt19937 random(7);
  const std::string alphabet = "a0129[]-, \n.9";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (unsigned i = random() % 24; i > 0; --i) text += alphabet[random() % alphabet.size()];
    const auto hosts = expand_hostlist(text);
    if (!hosts.ok()) {
      EXPECT_FALSE(hosts.error().where.empty());
      continue;
    }
    EXPECT_LE(hosts->size(), max_hosts);
    EXPECT_EQ(expand(join(*hosts, ",")), *hosts);
  }
}

}  // namespace
}  // namespace ezpz
