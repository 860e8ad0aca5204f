#include "site/hostfile.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace ezpz::site {
namespace {

const NodeNaming naming = {{".*"}, {"-hsn#"}};
using Names = std::vector<std::string>;

Names parsed(const char* text) {
  const Result<Hostfile> file = parse_hostfile(text, "hosts", naming);
  return file.ok() ? spellings(file->hosts) : Names{file.error().one_line()};
}

TEST(Hostfile, FormsThatPeopleWriteAreUnderstood) {
  EXPECT_EQ(
      parsed("# pool\nnid1\n\n  nid2  # sick once\r\nnid3 slots=4\nnid4:4\nnid[5-6]\nnid7,nid8"),
      (Names{"nid1", "nid2", "nid3", "nid4", "nid5", "nid6", "nid7", "nid8"}));
  EXPECT_EQ(parsed("10.0.0.1\nfe80::1\n"), (Names{"10.0.0.1", "fe80::1"}));
}

TEST(Hostfile, TheSpellingIsKeptAndANodeCountsOnce) {
  const Result<Hostfile> file =
      parse_hostfile("x2-hsn0.site.gov\nx1\nx2\nX1.site.gov\n", "hosts", naming);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(spellings(file->hosts), (Names{"x2-hsn0.site.gov", "x1"}));
  EXPECT_EQ(file->duplicates, (Names{"x2", "X1.site.gov"}));
  EXPECT_EQ(format_hostfile(file->hosts), "x2-hsn0.site.gov\nx1\n");
}

TEST(Hostfile, ErrorsAreOneLineWithThePlace) {
  EXPECT_EQ(parsed(""), Names{"hostfile is empty: hosts (list one host per line)"});
  EXPECT_EQ(parsed("# only text\n\n"), Names{"hostfile is empty: hosts (list one host per line)"});
  EXPECT_EQ(parsed("a\nb[1-\n")[0].find("host list: '[' is never closed at position 5: hosts:2"),
            0U);
  const Result<Hostfile> missing = read_hostfile("/no/such/hostfile", naming);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().one_line().find("cannot read the hostfile: /no/such/hostfile"), 0U);
}

TEST(Hostfile, IsReadFromDisk) {
  const std::string path = ::testing::TempDir() + "ezpz_hostfile_test";
  std::ofstream(path) << "a\nb\n";
  const Result<Hostfile> file = read_hostfile(path, naming);
  ASSERT_TRUE(file.ok()) << file.error().one_line();
  EXPECT_EQ(spellings(file->hosts), (Names{"a", "b"}));
  std::remove(path.c_str());
}

TEST(Hostfile, HostsOutsideTheAllocationAreNamed) {
  const auto allocation = make_nodes({"nid1", "nid2", "nid3"}, naming);
  const auto inside =
      within_allocation(make_nodes({"nid3.site.gov", "nid1"}, naming), allocation, "f");
  ASSERT_TRUE(inside.ok());
  EXPECT_EQ(spellings(*inside), (Names{"nid3", "nid1"}));
  const auto outside =
      within_allocation(make_nodes({"nid8", "nid1", "nid9"}, naming), allocation, "f");
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error().one_line(),
            "hosts are not in this job's allocation: nid[8-9]: f (the job has nid[1-3])");
  EXPECT_TRUE(within_allocation(make_nodes({"any"}, naming), {}, "f").ok());
}

}  // namespace
}  // namespace ezpz::site
