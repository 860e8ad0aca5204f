#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/proctable.h"
#include "base/text.h"

namespace ezpz {
namespace {

TEST(Helper, AnswersComeBackWithTheirExit) {
  Loop loop;
  const HelperResult yes = run_helper(loop, {"sh", "-c", "echo out; echo err >&2"}, 5);
  EXPECT_TRUE(yes.usable());
  EXPECT_EQ(yes.out, "out\n");
  EXPECT_EQ(yes.err, "err\n");
  const HelperResult no = run_helper(loop, {"sh", "-c", "echo why >&2; exit 3"}, 5);
  EXPECT_FALSE(no.usable());
  EXPECT_EQ(no.trouble, "sh: exit code 3: why");
}

TEST(Helper, AHangingQuestionIsEndedInTime) {
  Loop loop;
  const double before_s = monotonic_s();
  const HelperResult result = run_helper(loop, {"sh", "-c", "trap '' TERM; sleep 60"}, 0.2);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.trouble, "sh: no answer in time");
  EXPECT_LT(monotonic_s() - before_s, 10);
}

TEST(Helper, AGrandchildThatKeepsThePipeOpenIsNotAwaited) {
  Loop loop;
  const double before_s = monotonic_s();
  const HelperResult result = run_helper(loop, {"sh", "-c", "sleep 20 & echo done"}, 15);
  EXPECT_TRUE(result.usable());
  EXPECT_EQ(result.out, "done\n");
  EXPECT_LT(monotonic_s() - before_s, 10);
}

TEST(Helper, AMissingProgramIsSaidSo) {
  Loop loop;
  const HelperResult result = run_helper(loop, {"no-such-program-here"}, 5);
  EXPECT_FALSE(result.started);
  EXPECT_EQ(result.trouble,
            "command not found: no-such-program-here (check its spelling and PATH)");
}

TEST(Spawn, TheEnvironmentIsChangedNotReplaced) {
  Loop loop;
  setenv("EZPZ_TEST_GONE", "1", 1);
  Result<Pipe> out = make_pipe();
  SpawnSpec spec;
  spec.argv = {"sh", "-c", "echo ${EZPZ_TEST_SET}-${EZPZ_TEST_GONE-unset}-${PATH:+path}"};
  spec.env = {{"EZPZ_TEST_SET", "yes"}, {"EZPZ_TEST_GONE", std::nullopt}};
  spec.stdout_fd = out->write.get();
  const Result<pid_t> pid = spawn(spec);
  ASSERT_TRUE(pid.ok());
  out->write.reset();
  bool ended = false;
  loop.on_child(*pid, [&](Exit exit) {
    EXPECT_TRUE(exit.clean());
    ended = true;
  });
  loop.run_until([&] { return ended; });
  char buffer[100];
  const ssize_t n = read(out->read.get(), buffer, sizeof buffer);
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(std::max<ssize_t>(n, 0))), "yes-unset-path\n");
}

TEST(Spawn, AProgramThatCannotBeExecutedSaysWhy) {
  SpawnSpec spec;
  spec.argv = {"/etc/passwd"};
  const Result<pid_t> pid = spawn(spec);
  ASSERT_FALSE(pid.ok());
  EXPECT_EQ(pid.error().one_line(), "not an executable file: /etc/passwd (check its permissions)");
}

TEST(Loop, TimersFireInOrderAndCanBeCancelled) {
  Loop loop;
  std::string order;
  bool done = false;
  loop.after(0.03, [&] { done = true; });
  loop.after(0.02, [&] { order += 'b'; });
  loop.after(0.01, [&] { order += 'a'; });
  loop.cancel(loop.after(0.015, [&] { order += 'x'; }));
  loop.run_until([&] { return done; });
  EXPECT_EQ(order, "ab");
}

TEST(Loop, SignalsArriveAsCallbacks) {
  Loop loop;
  int seen = 0;
  loop.on_signal(SIGUSR1, [&] { ++seen; });
  kill(getpid(), SIGUSR1);
  loop.run_until([&] { return seen == 1; });
  EXPECT_EQ(seen, 1);
}

TEST(File, AnAtomicWriteLeavesNoTemporaryBehind) {
  char name[] = "/tmp/ezpz-file-test-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string folder = name;
  ASSERT_TRUE(write_file_atomically(folder + "/x", "one").ok());
  ASSERT_TRUE(write_file_atomically(folder + "/x", "two").ok());
  EXPECT_EQ(*read_file(folder + "/x"), "two");
  EXPECT_FALSE(write_file_atomically(folder + "/no/such/x", "three").ok());
  unlink((folder + "/x").c_str());
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "something was left behind";
}

TEST(Helper, WhatItStartedInASessionOfItsOwnEndsWithItToo) {
  Loop loop;
  // As an mpiexec and its rsh; the last word tells where the child is.
  const HelperResult result =
      run_helper(loop, {"sh", "-c", "setsid sleep 61 & echo $!; wait"}, 0.5);
  EXPECT_TRUE(result.timed_out);
  const auto child = parse_int(trim(result.out));
  ASSERT_TRUE(child.has_value()) << result.out;
  bool gone = false;
  for (int i = 0; i < 200 && !gone; ++i) {
    const auto process = read_process(static_cast<pid_t>(*child));
    gone = !process || process->state == 'Z';
    if (!gone) usleep(10'000);
  }
  EXPECT_TRUE(gone);
  if (!gone) kill(static_cast<pid_t>(*child), SIGKILL);
}

}  // namespace
}  // namespace ezpz
