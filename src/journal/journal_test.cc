#include "journal/journal.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "journal/event.h"
#include "journal/reader.h"

namespace ezpz::journal {
namespace {

struct JournalTest : testing::Test {
  std::string folder;
  Loop loop;
  JournalTest() {
    char name[] = "/tmp/ezpz-journal-test-XXXXXX";
    folder = mkdtemp(name);
  }
  ~JournalTest() override { std::filesystem::remove_all(folder); }
};

TEST_F(JournalTest, ARecordIsOnDiskWhenRecordReturns) {
  Scribe scribe(loop);
  ASSERT_TRUE(scribe.start("ezpz-scribe").ok());
  Journal journal(loop, scribe, folder + "/journal.jsonl");
  journal.record("swap", {{"host", "sim3"}, {"text", "bad \xff byte"}});
  const Result<Reading> reading = read_journal(folder + "/journal.jsonl");
  ASSERT_TRUE(reading.ok());
  ASSERT_EQ(reading->events.size(), 1U);
  EXPECT_EQ(reading->events[0].name, "swap");
  EXPECT_EQ(reading->events[0].context["host"], "sim3");
  EXPECT_GT(reading->events[0].time_s, 1e9);
}

TEST_F(JournalTest, WhatCouldNotBeWrittenIsKeptAndWrittenLaterWithTheGapRecorded) {
  Scribe scribe(loop);
  ASSERT_TRUE(scribe.start("ezpz-scribe").ok());
  const std::string path = folder + "/later/journal.jsonl";
  Journal journal(loop, scribe, path);
  journal.record("one", Json::object());
  journal.record("two", Json::object());
  EXPECT_EQ(journal.kept(), 2U) << "the folder does not exist: nothing can have been written";
  ASSERT_TRUE(make_directories(folder + "/later").ok());
  journal.record("three", Json::object());
  journal.record("four", Json::object());
  journal.close(1);
  const Result<Reading> reading = read_journal(path);
  ASSERT_TRUE(reading.ok());
  std::vector<std::string> names;
  for (const Event& event : reading->events) names.push_back(event.name);
  EXPECT_NE(std::find(names.begin(), names.end(), "journal_gap"), names.end());
  names.erase(std::find(names.begin(), names.end(), "journal_gap"));
  EXPECT_EQ(names, (std::vector<std::string>{"one", "two", "three", "four"}));
}

TEST_F(JournalTest, AnAnswerThatComesAfterTheJournalIsGoneHarmsNobody) {
  Scribe scribe(loop);
  ASSERT_TRUE(scribe.start("ezpz-scribe").ok());
  {
    Journal journal(loop, scribe, folder + "/missing/journal.jsonl");
    journal.note("one", Json::object());
    journal.note("two", Json::object());
    EXPECT_EQ(journal.kept(), 2U);
  }
  EXPECT_TRUE(scribe.settle(10));
}

TEST_F(JournalTest, ATornLastLineIsCountedAndTheRestIsRead) {
  const std::string whole = format_event(1, "a", Json::object());
  const Reading reading = read_events(whole + whole.substr(0, whole.size() / 2));
  EXPECT_EQ(reading.events.size(), 1U);
  EXPECT_EQ(reading.unreadable_lines, 1U);
}

TEST_F(JournalTest, TheScribeKeepsOrderAndBytes) {
  Scribe scribe(loop);
  ASSERT_TRUE(scribe.start("ezpz-scribe").ok());
  const int file = scribe.open_append(folder + "/log");
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const std::string chunk(static_cast<size_t>(20000 + i), static_cast<char>('a' + i % 26));
    expected += chunk;
    scribe.append(file, chunk);
  }
  EXPECT_TRUE(scribe.settle(30));
  EXPECT_EQ(*read_file(folder + "/log"), expected);
}

TEST_F(JournalTest, AFailedOperationComesBackAsItsErrno) {
  Scribe scribe(loop);
  ASSERT_TRUE(scribe.start("ezpz-scribe").ok());
  int trouble = -1;
  scribe.replace(folder + "/missing/file", "x", [&](int got) { trouble = got; });
  EXPECT_TRUE(scribe.settle(10));
  EXPECT_EQ(trouble, ENOENT);
}

}  // namespace
}  // namespace ezpz::journal
