#include "bench/columns.h"

#include <gtest/gtest.h>

namespace ezpz::bench {
namespace {

TEST(Columns, AreAsWideAsTheyMustBeAndEndWithoutBlanks) {
  EXPECT_EQ(aligned({{"run", "tok/s"}, {"a longer one", "7"}, {"b", ""}}),
            "run           tok/s\n"
            "a longer one  7\n"
            "b\n");
}

TEST(Columns, OfRowsThatAreNotAlikeEachHasItsOwn) {
  EXPECT_EQ(aligned({{"a"}, {"b", "c", "d"}, {}}), "a\nb  c  d\n\n");
}

}  // namespace
}  // namespace ezpz::bench
