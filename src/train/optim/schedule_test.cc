#include "train/optim/schedule.h"

#include <gtest/gtest.h>

namespace ezpz::train {
namespace {

TEST(Schedule, WarmsUpToTheFullRateOnTheLastStepOfTheWarmUp) {
  const Schedule s{1.0, 0.0, 4, 100};
  EXPECT_DOUBLE_EQ(s.at(0), 0.25);
  EXPECT_DOUBLE_EQ(s.at(3), 1.0);
  EXPECT_DOUBLE_EQ(s.at(4), 1.0);
}

TEST(Schedule, FallsAlongACosineToTheFloorAndStaysThere) {
  const Schedule s{1.0, 0.2, 0, 10};
  EXPECT_DOUBLE_EQ(s.at(0), 1.0);
  EXPECT_NEAR(s.at(5), 0.6, 1e-12);
  EXPECT_NEAR(s.at(10), 0.2, 1e-12);
  EXPECT_NEAR(s.at(50), 0.2, 1e-12);
}

TEST(Schedule, WithoutWarmUpStartsAtTheFullRate) {
  EXPECT_DOUBLE_EQ((Schedule{3e-4, 0, 0, 1}.at(0)), 3e-4);
}

}  // namespace
}  // namespace ezpz::train
