#include "base/flags.h"

#include <gtest/gtest.h>

namespace ezpz {
namespace {

struct FlagsTest : testing::Test {
  FlagTable table{"ezpz demo [flags] -- CMD ...", "About."};
  std::optional<long> nproc;
  bool loud = false;
  double timeout_s = 1800;
  std::vector<std::string> exclude;
  std::string launcher;

  FlagsTest() {
    table.add_int({"-n", "-np", "--nproc"}, "N", "Ranks in all.", 1, &nproc);
    table.add_switch({"--loud"}, "Say more.", &loud);
    table.add_seconds({"--timeout"}, "S", "Idle limit.", &timeout_s);
    table.add_list({"--exclude"}, "H,...", "Hosts to leave out.", &exclude);
    table.add_choice({"--launcher"}, "Which.", {"auto", "srun", "local"}, &launcher);
  }
};

TEST_F(FlagsTest, EverySpellingOfACountIsUnderstood) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-n", "8"},
                                                {"-np", "8"},
                                                {"--nproc", "8"},
                                                {"-n=8"},
                                                {"-np=8"},
                                                {"--nproc=8"},
                                                {"-n8"}}) {
    nproc.reset();
    ASSERT_TRUE(table.parse(words).ok()) << words[0];
    EXPECT_EQ(nproc, 8) << words[0];
  }
}

TEST_F(FlagsTest, TheCommandBeginsAtTheFirstWordThatIsNoFlag) {
  const auto rest = table.parse({"--loud", "python", "train.py", "--nproc", "2"});
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(*rest, (std::vector<std::string>{"python", "train.py", "--nproc", "2"}));
  EXPECT_FALSE(nproc.has_value());
}

TEST_F(FlagsTest, TheCommandBeginsAfterTwoDashes) {
  bool dashes = false;
  const auto rest = table.parse({"-n", "2", "--", "--odd-program"}, &dashes);
  ASSERT_TRUE(rest.ok());
  EXPECT_TRUE(dashes);
  EXPECT_EQ(*rest, (std::vector<std::string>{"--odd-program"}));
}

TEST_F(FlagsTest, AnUnknownFlagGetsTheNearestOneSuggested) {
  const auto rest = table.parse({"--nporc", "2"});
  ASSERT_FALSE(rest.ok());
  EXPECT_EQ(rest.error().one_line(), "unknown flag: --nporc (did you mean --nproc?)");
}

TEST_F(FlagsTest, ZeroNegativeAndNonsenseCountsAreRefused) {
  for (const char* bad : {"0", "-3", "many", "", "1e3", "99999999999999999999"}) {
    EXPECT_FALSE(table.parse({"-n", bad}).ok()) << bad;
  }
}

TEST_F(FlagsTest, AMissingValueAndAValueForASwitchAreErrors) {
  EXPECT_EQ(table.parse({"-n"}).error().one_line(), "needs a value: N: -n");
  EXPECT_EQ(table.parse({"-n", "--loud"}).error().one_line(), "needs a value: N: -n");
  EXPECT_EQ(table.parse({"-np", "x"}).error().one_line(), "not a whole number: x: -np");
  EXPECT_EQ(table.parse({"--loud=yes"}).error().one_line(), "takes no value: --loud");
}

TEST_F(FlagsTest, ListsJoinAndChoicesAreChecked) {
  ASSERT_TRUE(table.parse({"--exclude", "a,b", "--exclude=c"}).ok());
  EXPECT_EQ(exclude, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(table.parse({"--launcher", "ssh"}).error().one_line(),
            "not a choice: ssh: --launcher (one of auto, srun, local)");
}

TEST_F(FlagsTest, DurationsTakeUnits) {
  ASSERT_TRUE(table.parse({"--timeout", "15m"}).ok());
  EXPECT_EQ(timeout_s, 900);
  EXPECT_FALSE(table.parse({"--timeout", "soon"}).ok());
  EXPECT_FALSE(table.parse({"--timeout", "-1"}).ok());
  EXPECT_FALSE(table.parse({"--timeout", "nan"}).ok());
}

TEST_F(FlagsTest, FlagsMayStandBehindTheArgumentsWhereNothingIsStarted) {
  const auto rest = table.parse_mixed({"a.log", "--loud", "-n", "3", "-", "--", "--not-a-flag"});
  ASSERT_TRUE(rest.ok()) << rest.error().one_line();
  EXPECT_EQ(*rest, (std::vector<std::string>{"a.log", "-", "--not-a-flag"}));
  EXPECT_TRUE(loud);
  EXPECT_EQ(table.parse_mixed({"a.log", "--lout"}).error().where, "--lout");
  EXPECT_TRUE(FlagTable::wants_help_mixed({"a.log", "--help"}));
  EXPECT_FALSE(FlagTable::wants_help_mixed({"--", "--help"}));
}

TEST_F(FlagsTest, HelpIsAskedForOnlyBeforeTheCommand) {
  EXPECT_TRUE(table.wants_help({"--loud", "-h"}));
  EXPECT_FALSE(table.wants_help({"--", "prog", "--help"}));
  EXPECT_FALSE(table.wants_help({"prog", "--help"}));
  EXPECT_FALSE(table.wants_help({"--launcher", "--help"}));
}

TEST_F(FlagsTest, HelpNamesEveryFlagOnce) {
  const std::string help = table.help();
  EXPECT_NE(help.find("-n, -np, --nproc N"), std::string::npos);
  EXPECT_NE(help.find("auto|srun|local"), std::string::npos);
}

}  // namespace
}  // namespace ezpz
