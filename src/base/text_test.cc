#include "base/text.h"

#include <gtest/gtest.h>

#include "base/exit.h"
#include "base/fact.h"

namespace ezpz {
namespace {

TEST(Text, RangesFoldRuns) {
  EXPECT_EQ(ranges({0, 1, 2, 3, 6}), "0-3,6");
  EXPECT_EQ(ranges({5}), "5");
  EXPECT_EQ(ranges({}), "");
}

TEST(Text, AShellReadsBackWhatWasQuoted) {
  EXPECT_EQ(shell_quote("plain-word_1"), "plain-word_1");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("it's $HOME; rm"), R"('it'\''s $HOME; rm')");
}

TEST(Text, HostileBytesBecomeVisible) {
  EXPECT_EQ(printable("\x1b[31mred\x07\n"), "?[31mred??");
  EXPECT_EQ(printable(std::string(500, 'x')).size(), 403U);
}

TEST(Text, NumbersMustFillTheWord) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("42 "), std::nullopt);
  EXPECT_EQ(parse_int(""), std::nullopt);
  EXPECT_EQ(parse_int("9223372036854775808"), std::nullopt);
}

TEST(Text, ASlipOfTheFingerFindsItsWord) {
  EXPECT_EQ(nearest("--nporc", {"--nproc", "--nhosts"}), "--nproc");
  EXPECT_EQ(nearest("--entirely-else", {"--nproc", "--nhosts"}), std::nullopt);
}

TEST(Exit, ACoreDumpDoesNotHideItsSignal) {
  const Exit exit = Exit::from_wait_status(11 | 0x80);
  EXPECT_EQ(exit.signal, 11);
  EXPECT_TRUE(exit.core);
  EXPECT_EQ(exit.shell_code(), 139);
  EXPECT_EQ(exit.describe(), "signal 11 (Segmentation fault), core dumped");
}

TEST(Exit, AKilledChildIsNotAnExitOfZero) {
  const Exit exit = Exit::from_wait_status(9);
  EXPECT_FALSE(exit.clean());
  EXPECT_EQ(exit.signal, 9);
}

TEST(Fact, EveryWordIsReadBack) {
  for (int i = 0; i <= static_cast<int>(Kind::unknown); ++i) {
    Kind kind{};
    ASSERT_TRUE(parse(to_string(static_cast<Kind>(i)), &kind));
    EXPECT_EQ(static_cast<int>(kind), i);
  }
  Kind kind{};
  EXPECT_FALSE(parse("nonsense", &kind));
}

}  // namespace
}  // namespace ezpz
