#include "doctor/lustre.h"

#include <gtest/gtest.h>

namespace ezpz::doctor {
namespace {

constexpr const char* kSpace =
    "UUID                   1K-blocks        Used   Available Use% Mounted on\n"
    "lustre-MDT0000_UUID     1048576      102400      946176  10% /scratch[MDT:0]\n"
    "lustre-OST0000_UUID    10485760     1048576     9437184  10% /scratch[OST:0]\n"
    "lustre-OST001f_UUID    10485760    10485760           0 100% /scratch[OST:31]\n"
    "OST0020             : inactive device\n"
    "\n"
    "filesystem_summary:    20971520    11534336     9437184  56% /scratch\n";

TEST(Lustre, EveryTargetIsReadAndTheSummaryIsNone) {
  const auto targets = read_lustre_space(kSpace);
  ASSERT_EQ(targets.size(), 4U);
  EXPECT_FALSE(targets[0].is_ost);
  EXPECT_EQ(targets[1].name, "OST0000");
  EXPECT_DOUBLE_EQ(targets[1].used_share(), 0.1);
  EXPECT_EQ(targets[2].index, 31);
  EXPECT_DOUBLE_EQ(targets[2].used_share(), 1);
  EXPECT_FALSE(targets[3].active);
  EXPECT_EQ(targets[3].index, 32);
}

TEST(Lustre, WhatIsNoAnswerHasNoTarget) {
  for (const char* text : {"", "lfs df: '/tmp': Inappropriate ioctl for device",
                           "lustre-OST0000_UUID many few none 1% /x[OST:0]",
                           "lustre-OST0000_UUID -1 0 -1 1% /x[OST:0]"}) {
    EXPECT_TRUE(read_lustre_space(text).empty()) << text;
  }
}

TEST(Lustre, TheLayoutOfAFolderIsRead) {
  const auto stripes = read_lustre_stripes(
      "/scratch/me\nstripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1 "
      "pool:          fast\n");
  ASSERT_TRUE(stripes.has_value());
  EXPECT_EQ(stripes->count, 4);
  EXPECT_EQ(stripes->offset, -1);
  EXPECT_EQ(stripes->pool, "fast");
}

TEST(Lustre, OfACompositeLayoutTheBeginningCounts) {
  const auto stripes = read_lustre_stripes(
      "  lcm_layout_gen:    0\n  lcm_entry_count:   2\n"
      "      stripe_count:  1       stripe_size:   1048576       stripe_offset: -1\n"
      "      stripe_count:  -1       stripe_size:   4194304       stripe_offset: 7\n");
  ASSERT_TRUE(stripes.has_value());
  EXPECT_EQ(stripes->count, 1);
}

TEST(Lustre, ALayoutThatIsNotToldIsNone) {
  EXPECT_FALSE(read_lustre_stripes("").has_value());
  EXPECT_FALSE(read_lustre_stripes("stripe_count: lots stripe_offset: 0").has_value());
  EXPECT_FALSE(read_lustre_stripes("stripe_count: 9999999").has_value());
}

}  // namespace
}  // namespace ezpz::doctor
