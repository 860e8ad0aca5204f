#include "bench/csv.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "bench/testing.h"

namespace ezpz::bench {
namespace {

TEST(Csv, QuotesWhatNeedsItAndNothingElse) {
  EXPECT_EQ(csv_row({"plain", "a,b", "say \"no\"", "two\nlines", "", "x\r"}),
            "plain,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",,\"x\r\"");
}

TEST(Csv, ANewFileGetsTheHeaderOnce) {
  const TestDir dir;
  const std::string path = dir.path + "/made/runs.csv";
  std::string note;
  ASSERT_TRUE(append_csv_row(path, "a,b", "1,2", &note).ok());
  ASSERT_TRUE(append_csv_row(path, "a,b", "3,4", &note).ok());
  EXPECT_EQ(dir.read("made/runs.csv"), "a,b\n1,2\n3,4\n");
  EXPECT_EQ(note, "");
}

TEST(Csv, AnEmptyFileIsANewOne) {
  const TestDir dir;
  dir.write("runs.csv", "");
  std::string note;
  ASSERT_TRUE(append_csv_row(dir.path + "/runs.csv", "a,b", "1,2", &note).ok());
  EXPECT_EQ(dir.read("runs.csv"), "a,b\n1,2\n");
}

TEST(Csv, ADifferingHeaderIsRefusedAndTheFileStays) {
  const TestDir dir;
  for (const char* there : {"a,c\n9,9\n", "a\n", "a,b,c\n", "1,2\n", "\na,b\n"}) {
    dir.write("runs.csv", there);
    std::string note;
    const Status appended = append_csv_row(dir.path + "/runs.csv", "a,b", "1,2", &note);
    ASSERT_FALSE(appended.ok()) << there;
    EXPECT_NE(appended.error().one_line().find("header"), std::string::npos);
    EXPECT_EQ(dir.read("runs.csv"), there);
  }
}

TEST(Csv, ATornLastRowIsEndedFirst) {
  const TestDir dir;
  dir.write("runs.csv", "a,b\n1,2\n3");
  std::string note;
  ASSERT_TRUE(append_csv_row(dir.path + "/runs.csv", "a,b", "5,6", &note).ok());
  EXPECT_EQ(dir.read("runs.csv"), "a,b\n1,2\n3\n5,6\n");
}

TEST(Csv, AFileWithASpreadsheetsLineEndsKeepsThem) {
  const TestDir dir;
  dir.write("runs.csv", "a,b\r\n1,2\r\n");
  std::string note;
  ASSERT_TRUE(append_csv_row(dir.path + "/runs.csv", "a,b", "5,6", &note).ok());
  EXPECT_EQ(dir.read("runs.csv"), "a,b\r\n1,2\r\n5,6\r\n");
}

TEST(Csv, WhatIsNoFileIsRefused) {
  const TestDir dir;
  std::string note;
  EXPECT_FALSE(append_csv_row(dir.path, "a", "1", &note).ok());
  EXPECT_FALSE(append_csv_row("/dev/null", "a", "1", &note).ok());
}

TEST(Csv, ManyThatAppendAtOnceLoseNothingAndWriteOneHeader) {
  const TestDir dir;
  constexpr int writers = 8;
  constexpr int rows = 50;
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      bool all = true;
      for (int row = 0; row < rows; ++row) {
        std::string note;
        all = all && append_csv_row(dir.path + "/runs.csv", "a,b",
                                    std::to_string(writer) + "," + std::to_string(row), &note)
                         .ok();
      }
      _exit(all ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::vector<std::string> lines = split_lines(dir.read("runs.csv"));
  ASSERT_EQ(lines.size(), 1U + writers * rows);
  EXPECT_EQ(lines[0], "a,b");
  std::vector<int> next(writers);
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = split(lines[i], ',');
    ASSERT_EQ(fields.size(), 2U);
    EXPECT_EQ(std::to_string(next[static_cast<size_t>(std::stoi(fields[0]))]++), fields[1]);
  }
}

}  // namespace
}  // namespace ezpz::bench
