// Messages spread over several lines.
#include "evidence/prefaces.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "evidence/grammar.h"
#include "evidence/stream.h"

namespace ezpz::evidence {
namespace {

// One table as a launcher that prints a message over several lines would need it.
constexpr const char* kSite = R"(
[[preface]]
id = 'site.where'
regex = 'worker at {host} ranks? {ranks}'
triggers = ['worker at ']
example = 'worker at nid1 rank 3'

[[preface]]
id = 'site.first'
group = 'section'
regex = '^first to fail'
triggers = ['first to fail']
example = 'first to fail'

[[preface]]
id = 'site.others'
group = 'section'
regex = '^also failed'
triggers = ['also failed']
example = 'also failed'

[[pattern]]
id = 'site.victim'
regex = 'worker status (?P<code>[0-9]+)'
triggers = ['worker status ']
kind = 'app_error'
role = 'cascade'
event = 'death'
priority = 1
takes_from = 'site.where'
only_after = 'site.others'
example = "also failed\nworker status 5"

[[preface]]
id = 'site.ended'
regex = '^job over'
triggers = ['job over']
example = 'job over'

[[pattern]]
id = 'site.lost_master'
regex = '^master does not answer'
triggers = ['master does not answer']
kind = 'env_fault'
role = 'cause'
not_after = 'site.ended'
example = 'master does not answer'

[[pattern]]
id = 'site.death'
regex = 'worker status (?P<code>[0-9]+)'
triggers = ['worker status ']
kind = 'app_error'
role = 'cause'
event = 'death'
takes_from = 'site.where'
example = { line = "worker at nid1 rank 3\nworker status 5", host = 'nid1', code = 5 }
)";

Result<Grammar> load(const std::string& toml) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("ezpz_prefaces_test." + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "site.toml") << toml;
  Result<Grammar> grammar = Grammar::load(directory.string());
  std::filesystem::remove_all(directory);
  return grammar;
}

std::vector<Fact> facts_of(const std::string& log) {
  static const Grammar grammar = load(kSite).value();
  Stream stream(grammar);
  stream.feed(log);
  stream.finish();
  return stream.facts();
}

TEST(Prefaces, AMessageIsNoneAfterAPrefaceThatForbidsItWhoeverSaidThat) {
  EXPECT_EQ(facts_of("master does not answer\n").size(), 1U);
  EXPECT_TRUE(facts_of("job over\nmaster does not answer\n").empty());
  EXPECT_TRUE(facts_of(" 3: job over\n 5: master does not answer\n").empty());
  std::string far_apart = "job over\n";
  for (int i = 0; i <= kPrefaceReach; ++i) far_apart += "noise\n";
  EXPECT_EQ(facts_of(far_apart + "master does not answer\n").size(), 1U);
}

TEST(Prefaces, AMessageTakesWhatItLacksFromTheLineBefore) {
  const std::vector<Fact> facts = facts_of("worker at nid7 ranks 4-7\nworker status 139\n");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].host, "nid7");
  EXPECT_EQ(facts[0].ranks, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(facts[0].code, 139);
  EXPECT_EQ(facts[0].line, 2);
}

TEST(Prefaces, OutputOfOthersMayComeBetween) {
  EXPECT_EQ(facts_of("worker at nid7 rank 4\nstep=1\nTraceback\n\nworker status 1\n").at(0).host,
            "nid7");
}

TEST(Prefaces, WhatWasTakenIsNotTakenAgain) {
  const std::vector<Fact> facts =
      facts_of("worker at nid7 rank 4\nworker status 1\nworker status 2\n");
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[1].host, "");
}

TEST(Prefaces, APrefaceFarAboveIsForgotten) {
  std::string log = "worker at nid7 rank 4\n";
  for (int64_t i = 0; i < kPrefaceReach; ++i) log += "something else\n";
  EXPECT_EQ(facts_of(log + "worker status 1\n").at(0).host, "");
}

TEST(Prefaces, AnotherSourcesPrefaceIsNotTaken) {
  EXPECT_EQ(facts_of("3: worker at nid7 rank 4\n5: worker status 1\n").at(0).host, "");
  EXPECT_EQ(facts_of("3: worker at nid7 rank 4\n3: worker status 1\n").at(0).host, "nid7");
}

TEST(Prefaces, TheLatestSectionDecidesWhatALineMeans) {
  const std::vector<Fact> facts = facts_of(
      "also failed\nworker at nid7 rank 4\nworker status 1\n"
      "first to fail\nworker at nid8 rank 8\nworker status 2\n");
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[0].pattern, "site.victim");
  EXPECT_EQ(facts[0].host, "nid7");
  EXPECT_EQ(facts[1].pattern, "site.death");
  EXPECT_EQ(facts[1].host, "nid8");
}

TEST(Prefaces, ALogOfNothingButPrefacesDoesNotFillTheMemory) {
  Prefaces prefaces;
  for (int i = 0; i < 10000; ++i) {
    Origin origin;
    origin.ranks = {i};
    prefaces.remember(0, "g", Fact(), origin, 1);
  }
  Origin last;
  last.ranks = {9999};
  EXPECT_TRUE(prefaces.latest_is_one_of({0}, "g", last, 1));
  Origin first;
  first.ranks = {0};
  EXPECT_FALSE(prefaces.latest_is_one_of({0}, "g", first, 1));
}

TEST(Prefaces, AMistypedNameIsAnError) {
  std::string spoiled = kSite;
  spoiled.replace(spoiled.find("takes_from = 'site.where'"), 25, "takes_from = 'site.wher' ");
  const Result<Grammar> grammar = load(spoiled);
  ASSERT_FALSE(grammar);
  EXPECT_NE(grammar.error().one_line().find("no preface is called 'site.wher'"), std::string::npos);
}

}  // namespace
}  // namespace ezpz::evidence
