#include "train/loop/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

namespace ezpz::train {
namespace {

Place rank_of_two(int rank) {
  Place place;
  place.rank = rank;
  place.world = 2;
  place.host = "n1";
  return place;
}

int write_through(Disk* disk) {
  std::string path = testing::TempDir() + "fault-XXXXXX";
  const int fd = mkstemp(path.data());
  const int answer = disk->write(fd, "x", 1);
  close(fd);
  unlink(path.c_str());
  return answer;
}

TEST(Fault, IsReadWithItsDetails) {
  const auto faults =
      parse_faults("kill@60:rank=5,exit@7:code=3:attempt=every,enospc@4:times=2:host=n7:attempt=2");
  ASSERT_TRUE(faults.ok());
  ASSERT_EQ(faults->size(), 3U);
  EXPECT_EQ((*faults)[0].kind, Fault::Kind::kill);
  EXPECT_EQ((*faults)[0].step, 60);
  EXPECT_EQ((*faults)[0].rank, 5);
  EXPECT_EQ((*faults)[0].attempt, 1) << "the run after it comes to the same step again";
  EXPECT_EQ((*faults)[1].code, 3);
  EXPECT_FALSE((*faults)[1].attempt.has_value());
  EXPECT_EQ((*faults)[2].host, "n7");
  EXPECT_EQ((*faults)[2].times, 2);
  EXPECT_TRUE(parse_faults("")->empty());
}

TEST(Fault, ThatIsNoneIsAnError) {
  for (const char* text :
       {"kill", "kill@", "kill@0", "kill@-3", "@3", "burn@3", "kill@3:", "kill@3:rank",
        "kill@3:rank=", "kill@3:rank=-1", "exit@3:code=256", "kill@3:when=now", "kill@3,",
        "kill@99999999999999999999", "kill@3:host="}) {
    EXPECT_FALSE(parse_faults(text).ok()) << text;
  }
}

TEST(Fault, EndsOnlyTheRankAndAttemptThatItIsMeantFor) {
  const auto faults = *parse_faults("exit@3:rank=1:code=9");
  Faults(faults, rank_of_two(0), 1, "").before_step(3);
  Faults(faults, rank_of_two(1), 2, "").before_step(3);
  Faults(faults, rank_of_two(1), 1, "").before_step(2);
  EXPECT_EXIT(Faults(faults, rank_of_two(1), 1, "").before_step(3), testing::ExitedWithCode(9),
              "FAULT-exit-step-3-rank-1-attempt-1 pid=[0-9]+ host=n1");
  EXPECT_EXIT(Faults(*parse_faults("kill@3"), rank_of_two(1), 1, "").before_step(3),
              testing::KilledBySignal(SIGKILL), "FAULT-kill");
}

TEST(Fault, FillsTheDiskFromItsStepOnAsOftenAsItIsTold) {
  Faults faults(*parse_faults("enospc@4:times=2"), rank_of_two(0), 1, "");
  std::vector<int> answers;
  for (const long step : {2, 4, 6, 8}) {
    faults.before_save(step);
    answers.push_back(write_through(faults.disk()));
  }
  EXPECT_EQ(answers, (std::vector<int>{0, ENOSPC, ENOSPC, 0}));
}

}  // namespace
}  // namespace ezpz::train
