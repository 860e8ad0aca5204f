#include "supervise/whole_lines.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace ezpz::supervise {
namespace {

struct WholeLinesTest : testing::Test {
  Loop loop;
  Pipe pipe = *make_pipe();
  WholeLines lines{loop};

  WholeLinesTest() {
    set_nonblocking(pipe.read.get());
    set_nonblocking(pipe.write.get());
  }
  void add(int speaker, std::string_view bytes) {
    lines.add({speaker, 1}, pipe.write.get(), bytes);
  }
  std::string seen() {
    std::string text(1U << 20U, '\0');
    const ssize_t n = read(pipe.read.get(), text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }
};

TEST_F(WholeLinesTest, AnUnfinishedLineWaitsForItsEndWhileOthersSpeak) {
  add(0, "one\nloss=0.");
  add(1, "two\n");
  EXPECT_EQ(seen(), "one\ntwo\n");
  add(0, "5\n");
  EXPECT_EQ(seen(), "loss=0.5\n");
}

TEST_F(WholeLinesTest, WhatHasNoEndComesAfterAMoment) {
  add(0, "5%\r 10%");
  EXPECT_EQ(seen(), "5%\r") << "a progress bar moves";
  std::string got;
  bool late = false;
  loop.after(10, [&late] { late = true; });
  loop.watch_read(pipe.read.get(), [&] { got += seen(); });
  loop.run_until([&] { return late || !got.empty(); });
  loop.unwatch_read(pipe.read.get());
  EXPECT_EQ(got, " 10%");
}

TEST_F(WholeLinesTest, ABurstIsNeverCutInALineHoweverLongItTakes) {
  bool late = false;
  loop.after(WholeLines::kPatience_s * 1.6, [&late] { late = true; });
  std::string got;
  int pieces = 0;
  std::function<void()> speak = [&] {
    for (int speaker = 0; speaker < 3; ++speaker)
      add(speaker, ++pieces % 2 == 0 ? "end\nbe" : "gin ");
    got += seen();
    loop.after(0.02, speak);
  };
  add(0, "be");
  add(1, "be");
  add(2, "be");
  speak();
  loop.run_until([&late] { return late; });
  EXPECT_GT(pieces, 100) << "it must last longer than the patience";
  for (const std::string& line : split_lines(got)) {
    EXPECT_TRUE(line.starts_with("be") && line.ends_with("end")) << line;
  }
}

TEST_F(WholeLinesTest, ALineIsEndedOnlyForSomebodyElse) {
  add(0, "a");
  lines.finish({0, 1});
  add(0, "b\n");
  EXPECT_EQ(seen(), "ab\n");
  add(0, "c");
  lines.finish({0, 1});
  lines.say(pipe.write.get(), "ours");
  EXPECT_EQ(seen(), "c\nours\n");
  add(0, "last");
  lines.finish_all();
  EXPECT_EQ(seen(), "last") << "nothing is put behind the last byte";
}

TEST_F(WholeLinesTest, AReaderWhoDoesNotReadIsWaitedForAndLosesNothing) {
  const std::string line(1023, 'x');
  for (int i = 0; i < 6000; ++i) add(0, line + "\n");
  EXPECT_TRUE(lines.full()) << "whoever fills it must know";
  EXPECT_FALSE(lines.empty());
  size_t got = 0;
  bool late = false;
  loop.after(20, [&late] { late = true; });
  loop.watch_read(pipe.read.get(), [&] { got += seen().size(); });
  loop.run_until([&] { return late || got == size_t{6000} * 1024; });
  loop.unwatch_read(pipe.read.get());
  EXPECT_EQ(got, 6000U * 1024U);
  EXPECT_TRUE(lines.empty());
}

TEST_F(WholeLinesTest, AReaderWhoIsGoneIsNotWaitedFor) {
  signal(SIGPIPE, SIG_IGN);
  pipe.read.reset();
  add(0, "for nobody\n");
  EXPECT_TRUE(lines.broken());
  EXPECT_TRUE(lines.empty());
}

}  // namespace
}  // namespace ezpz::supervise
