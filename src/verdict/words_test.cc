// The small tables: what schedulers call a node or a job, what signals mean, which words parse.
#include <gtest/gtest.h>

#include "verdict/death.h"
#include "verdict/node_state.h"
#include "verdict/policy.h"
#include "verdict/testing.h"

namespace ezpz::verdict {
namespace {

using namespace testing;

TEST(NodeHealth, TellsLostFromSilentFromFine) {
  for (const char* state :
       {"DOWN", "DOWN*", "DOWN+DRAIN", "IDLE+FAIL", "down", "state-unknown,down",
        "DOWN+NOT_RESPONDING", "FAIL*", "down,offline", "offline,down", "job-busy,down"}) {
    EXPECT_EQ(node_health(state), NodeHealth::lost) << state;
  }
  for (const char* state : {"ALLOCATED*", "MIXED+NOT_RESPONDING", "IDLE+NO_RESPOND",
                            "state-unknown", "stale", "offline,state-unknown"}) {
    EXPECT_EQ(node_health(state), NodeHealth::silent) << state;
  }
  for (const char* state : {"", "IDLE", "ALLOCATED", "MIXED", "DRAINING", "DRAINED", "DRAIN",
                            "IDLE~", "FAILING", "FUTURE", "job-exclusive", "free", "free,DOWNHILL",
                            "offline", "offline,job-busy", "busy"}) {
    EXPECT_EQ(node_health(state), NodeHealth::fine) << state;
  }
}

TEST(JobState, AnEndIsOnlyWhatSaysSoByItself) {
  EXPECT_EQ(end_of_job("TIMEOUT"), Kind::walltime);
  EXPECT_EQ(end_of_job("cancelled by 1000"), Kind::cancelled);
  for (const char* state : {"", "RUNNING", "COMPLETING", "COMPLETED", "FAILED", "NODE_FAILED"}) {
    EXPECT_EQ(end_of_job(state), std::nullopt) << state;
  }
}

TEST(JobState, TheLettersOfPbsAreNotSlurms) {
  for (const char* state : {"R", "E", "F", "H", "Q", "B", "X", "S", "U", "W", "T", "M", "f"}) {
    EXPECT_EQ(end_of_job(state), std::nullopt) << state;
  }
}

TEST(Death, AShellsCodeAbove128IsTheSignalAgain) {
  EXPECT_EQ(hand_in_death(exited("n", {0}, 137)), Hand::outside);
  EXPECT_EQ(hand_in_death(exited("n", {0}, 143)), Hand::asked);
  EXPECT_EQ(hand_in_death(exited("n", {0}, 139)), Hand::itself);
  EXPECT_EQ(hand_in_death(exited("n", {0}, 127)), Hand::unusable);
  EXPECT_EQ(hand_in_death(exited("n", {0}, 255)), Hand::exit);
  EXPECT_EQ(hand_in_death(exited("n", {0}, -1)), Hand::unknown);
}

TEST(Words, EveryWordParsesToWhatPrintedIt) {
  for (int i = 0; i < 6; ++i) {
    Provenance p = Provenance::blind;
    ASSERT_TRUE(parse(to_string(static_cast<Provenance>(i)), &p));
    EXPECT_EQ(p, static_cast<Provenance>(i));
  }
  for (int i = 0; i < 4; ++i) {
    Action a = Action::stop;
    ASSERT_TRUE(parse(to_string(static_cast<Action>(i)), &a));
    EXPECT_EQ(a, static_cast<Action>(i));
  }
  for (int i = 0; i < 3; ++i) {
    Ending e = Ending::exited;
    Blind b = Blind::never;
    ASSERT_TRUE(parse(to_string(static_cast<Ending>(i)), &e));
    ASSERT_TRUE(parse(to_string(static_cast<Blind>(i)), &b));
    EXPECT_EQ(e, static_cast<Ending>(i));
    EXPECT_EQ(b, static_cast<Blind>(i));
  }
  Blind b = Blind::always;
  EXPECT_FALSE(parse("sometimes", &b));
  EXPECT_EQ(b, Blind::always);
}

}  // namespace
}  // namespace ezpz::verdict
