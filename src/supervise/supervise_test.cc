#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/proctable.h"
#include "supervise/supervisor.h"
#include "supervise/tee.h"

namespace ezpz::supervise {
namespace {

struct SuperviseTest : testing::Test {
  std::string folder;
  Loop loop;
  Keeper keeper{loop};
  journal::Scribe disk{loop};
  std::string seen;
  std::vector<Fact> facts;

  SuperviseTest() {
    char name[] = "/tmp/ezpz-supervise-test-XXXXXX";
    folder = mkdtemp(name);
    EXPECT_TRUE(keeper.start().ok());
    EXPECT_TRUE(disk.start("ezpz-scribe").ok());
  }
  ~SuperviseTest() override { std::filesystem::remove_all(folder); }

  Supervisor::Hooks hooks() {
    return {{},
            [this](std::string_view bytes) { seen += bytes; },
            [this](Fact fact) { facts.push_back(std::move(fact)); }};
  }
  static launch::Plan plan(const std::string& script) {
    launch::Plan plan;
    plan.argv = {"sh", "-c", script};
    return plan;
  }
};

TEST_F(SuperviseTest, OutputReachesLogAndStreamByteForByte) {
  Supervisor supervisor(loop, keeper, {}, hooks());
  const int log = disk.open_append(folder + "/attempt-1.log");
  const Result<Outcome> outcome =
      supervisor.run(plan(R"(printf 'a\000b\377\n'; printf 'err' >&2; exit 3)"), {}, {&disk, log});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit.code, 3);
  const std::string expected("a\0b\xff\nerr", 8);
  EXPECT_EQ(seen, expected);
  ASSERT_TRUE(disk.settle(5));
  EXPECT_EQ(*read_file(folder + "/attempt-1.log"), expected);
}

TEST_F(SuperviseTest, AGracefulStopGivesTimeAndASecondOneDoesNot) {
  Settings settings;
  settings.grace_s = 30;
  Supervisor supervisor(loop, keeper, settings, hooks());
  loop.after(0.2, [&] { supervisor.stop(StopCause::user, SIGINT); });
  loop.after(0.5, [&] { supervisor.stop(StopCause::user, SIGINT); });
  const double before_s = monotonic_s();
  // Our launchers end on the second SIGTERM.
  const Result<Outcome> outcome = supervisor.run(
      plan("n=0; trap 'n=$((n+1)); [ $n = 2 ] && exit 9' TERM; while :; do sleep 0.02; done"), {},
      {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit.code, 9);
  EXPECT_TRUE(outcome->went_hard);
  EXPECT_EQ(outcome->stopped_by, StopCause::user);
  EXPECT_LT(monotonic_s() - before_s, 20);
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[0].event, Event::teardown);
}

TEST_F(SuperviseTest, SilenceBeyondTheLimitIsEndedByTheWatchdog) {
  Settings settings;
  settings.idle_timeout_s = 0.3;
  settings.grace_s = 1;
  Supervisor supervisor(loop, keeper, settings, hooks());
  const Result<Outcome> outcome = supervisor.run(plan("echo once; exec sleep 100"), {}, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->stopped_by, StopCause::watchdog);
  EXPECT_EQ(outcome->exit.signal, SIGTERM);
  EXPECT_EQ(facts.at(0).kind, Kind::hang);
}

TEST_F(SuperviseTest, AfterARanksErrorAPartOfTheIdleLimitIsEnough) {
  Settings settings;
  settings.idle_timeout_s = 18;
  settings.grace_s = 1;
  Supervisor supervisor(loop, keeper, settings, hooks());
  loop.after(0.1, [&] { supervisor.rank_failed(); });
  const double before_s = monotonic_s();
  const Result<Outcome> outcome = supervisor.run(plan("echo once; exec sleep 100"), {}, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->stopped_by, StopCause::watchdog);
  EXPECT_GT(monotonic_s() - before_s, 2.5);
  EXPECT_LT(monotonic_s() - before_s, 15);
  EXPECT_NE(facts.at(0).text.find("after a rank's error"), std::string::npos);
}

TEST_F(SuperviseTest, ARanksErrorThatTheJobOutlivesShortensNothing) {
  Settings settings;
  settings.idle_timeout_s = 12;
  settings.grace_s = 1;
  Supervisor supervisor(loop, keeper, settings, hooks());
  loop.after(0.1, [&] { supervisor.rank_failed(); });
  loop.after(1.5, [&] { supervisor.progressed(); });
  const Result<Outcome> outcome = supervisor.run(plan("echo once; sleep 4; echo done"), {}, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->stopped_by, StopCause::none);
}

TEST_F(SuperviseTest, SilenceSoonAfterTheStartIsEndedEarlierUnlessAStepWasSeen) {
  Settings settings;
  settings.idle_timeout_s = 100;
  settings.first_step_timeout_s = 0.3;
  settings.grace_s = 1;
  {
    Supervisor supervisor(loop, keeper, settings, hooks());
    const Result<Outcome> outcome = supervisor.run(plan("echo once; exec sleep 100"), {}, {});
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->stopped_by, StopCause::watchdog);
  }
  Supervisor supervisor(loop, keeper, settings, hooks());
  loop.after(0, [&] { supervisor.progressed(); });
  const Result<Outcome> outcome = supervisor.run(plan("echo step=1; exec sleep 1"), {}, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->stopped_by, StopCause::none);
}

TEST_F(SuperviseTest, NcclsLinesGoToTheLogAndNotToTheTerminalWhenTheyAreOurDoing) {
  const std::string script =
      "echo step=1; echo 'n1:1:1 [0] NCCL INFO Using network Socket'; printf 'n1:1:1 [0] NC'; "
      "printf 'CL INFO x\\n'; printf end";
  for (const bool ours : {true, false}) {
    Supervisor supervisor(loop, keeper, {}, hooks());
    const std::string at = folder + (ours ? "/ours" : "/users");
    const int terminal = disk.open_append(at + ".terminal");
    const int log = disk.open_append(at + ".log");
    ASSERT_TRUE(supervisor.run(plan(script), {&disk, terminal, ours}, {&disk, log}).ok());
    ASSERT_TRUE(disk.settle(5));
    const std::string whole =
        "step=1\nn1:1:1 [0] NCCL INFO Using network Socket\nn1:1:1 [0] NCCL INFO x\nend";
    EXPECT_EQ(*read_file(at + ".log"), whole);
    EXPECT_EQ(*read_file(at + ".terminal"), ours ? "step=1\nend" : whole);
  }
}

TEST_F(SuperviseTest, ASilentGrandchildHoldingTheOutputDoesNotHoldTheVerdict) {
  Supervisor supervisor(loop, keeper, {}, hooks());
  const double before_s = monotonic_s();
  const Result<Outcome> outcome = supervisor.run(plan("sleep 100 & echo $! ; exit 0"), {}, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_LT(monotonic_s() - before_s, 20);
  const int grandchild = atoi(seen.c_str());
  ASSERT_GT(grandchild, 1);
  EXPECT_EQ(kill(grandchild, SIGKILL), 0) << "the grandchild must still have been there";
}

TEST_F(SuperviseTest, AMissingLauncherIsAnErrorNotAnExit) {
  Supervisor supervisor(loop, keeper, {}, hooks());
  launch::Plan missing;
  missing.argv = {"/no/such/launcher"};
  const Result<Outcome> outcome = supervisor.run(missing, {}, {});
  ASSERT_FALSE(outcome.ok());
}

TEST_F(SuperviseTest, ALogThatCannotBeWrittenCostsTheLogNotTheJob) {
  Supervisor supervisor(loop, keeper, {}, hooks());
  const int log = disk.open_append(folder + "/no/such/folder/attempt-1.log");
  const Result<Outcome> outcome = supervisor.run(plan("echo hello"), {}, {&disk, log});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit.code, 0);
  EXPECT_EQ(seen, "hello\n");
}

TEST_F(SuperviseTest, MemoryStaysFlatWhenNobodyReadsTheTerminal) {
  // A "terminal" that never takes a byte: the scribe's output goes to a pipe nobody reads.
  Result<Pipe> stuck = make_pipe();
  ASSERT_TRUE(stuck.ok());
  const int saved = dup(1);
  ASSERT_EQ(dup2(stuck->write.get(), 1), 1);
  journal::Scribe terminal(loop);
  ASSERT_TRUE(terminal.start("ezpz-terminal", journal::Scribe::Terminal::yes).ok());
  dup2(saved, 1);
  close(saved);
  const int log = disk.open_append(folder + "/attempt-1.log");
  Supervisor supervisor(loop, keeper, {}, [this] {
    Supervisor::Hooks hooks;
    hooks.on_output = [](std::string_view) {};
    hooks.on_fact = [this](Fact fact) { facts.push_back(std::move(fact)); };
    return hooks;
  }());
  size_t worst = 0;
  std::function<void()> watch = [&] {
    worst = std::max(worst, terminal.backlog_bytes());
    loop.after(0.05, watch);
  };
  loop.after(0.05, watch);
  const Result<Outcome> outcome =
      supervisor.run(plan("head -c 60000000 /dev/zero"), {&terminal, 1}, {&disk, log});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit.code, 0);
  EXPECT_GT(outcome->terminal_bytes_skipped, 0U);
  EXPECT_LT(worst, Tee::kMaxBacklog_bytes + (1U << 20U));
  ASSERT_TRUE(disk.settle(20));
  EXPECT_EQ(std::filesystem::file_size(folder + "/attempt-1.log"), 60000000U);
}

TEST(Keeper, WhatWasStartedEndsWhenItsOwnerIsKilled) {
  Result<Pipe> told = make_pipe();
  ASSERT_TRUE(told.ok());
  const pid_t owner = fork();
  if (owner == 0) {
    Loop loop;
    Keeper keeper(loop);
    if (!keeper.start().ok()) _exit(1);
    SpawnSpec spec;
    spec.argv = {"sh", "-c", "trap '' TERM HUP; sleep 100"};
    spec.new_session = true;
    const Result<pid_t> child = spawn(spec);
    if (!child) _exit(1);
    keeper.guard_session(*child);
    const pid_t pid = *child;
    write_all(told->write.get(), {reinterpret_cast<const char*>(&pid), sizeof pid});
    pause();
    _exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(read(told->read.get(), &child, sizeof child), static_cast<ssize_t>(sizeof child));
  usleep(100'000);
  ASSERT_TRUE(read_process(child).has_value()) << "the fault needs somebody to survive it";
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    const auto process = read_process(child);
    gone = !process || process->state == 'Z';
    if (!gone) usleep(20'000);
  }
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace ezpz::supervise
