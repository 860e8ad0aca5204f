#include "launch/port.h"

#include <gtest/gtest.h>

#include <set>

namespace ezpz::launch {
namespace {

TEST(Port, IsTheSameForTheSameAttempt) {
  EXPECT_EQ(choose_port("57520568", 1, "run-1", nullptr), choose_port("57520568", 1, "run-1", {}));
}

TEST(Port, EveryAttemptOfARunHasItsOwn) {
  std::set<int> ports;
  for (int attempt = 1; attempt <= 500; ++attempt) {
    const int port = choose_port("57520568", attempt, "", nullptr);
    EXPECT_GE(port, first_port);
    EXPECT_LE(port, last_port);
    ports.insert(port);
  }
  EXPECT_EQ(ports.size(), 500U);
}

TEST(Port, JobsAndRunsDiffer) {
  EXPECT_NE(choose_port("1", 1, "", nullptr), choose_port("2", 1, "", nullptr));
  EXPECT_NE(choose_port("1", 1, "a", nullptr), choose_port("1", 1, "b", nullptr));
}

TEST(Port, ATakenOneIsPassedOver) {
  const int first = choose_port("1", 1, "", nullptr);
  const int next = choose_port("1", 1, "", [&](int port) { return port != first; });
  EXPECT_EQ(next, first == last_port ? first_port : first + 1);
}

TEST(Port, WhereNoneIsFreeThePreferredIsTried) {
  EXPECT_EQ(choose_port("1", 1, "", [](int) { return false; }), choose_port("1", 1, "", nullptr));
}

}  // namespace
}  // namespace ezpz::launch
