// What the stream does not look at must not change what it says: steps are searched from behind,
// and messages that were said often enough are no longer matched.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "evidence/grammar_tables.h"
#include "evidence/matcher.h"
#include "evidence/stream.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

// The steps of a log as one who reads every line knows them.
Progress read_every_line(const std::vector<std::string>& lines) {
  Matcher matcher(test_grammar().tables());
  Progress progress;
  std::vector<int64_t> different;
  int64_t largest_bar = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Outcome outcome = matcher.match(lines[i], static_cast<int64_t>(i + 1));
    if (const std::optional<Step> step = matcher.step(lines[i])) {
      if (step->bar_total && *step->bar_total < largest_bar) continue;
      if (step->bar_total) largest_bar = *step->bar_total;
      if (!progress.first_step) progress.first_step = step->value;
      progress.last_step = step->value;
      const bool other = different.empty() || different.back() != step->value;
      if (different.size() < 3 && other) different.push_back(step->value);
    }
    if (outcome.checkpoint) {
      const auto at = outcome.checkpoint_step ? outcome.checkpoint_step : progress.last_step;
      if (at) progress.last_checkpoint = at;
    }
    if (outcome.resumed_from) progress.resumed_from = outcome.resumed_from;
  }
  for (size_t i = 1; i < different.size(); ++i) {
    progress.interval =
        std::max(progress.interval.value_or(1), std::abs(different[i] - different[i - 1]));
  }
  return progress;
}

std::string some_line(std::mt19937* random) {
  const std::string number = std::to_string((*random)() % 1000);
  const std::vector<std::string> forms{"step=# loss=2.5",
                                       "[rank3]: step: #  loss: 4.1",
                                       "iteration #/100000 | lm loss 2",
                                       "tokens per step: #",
                                       "step # of setup: step 3 of 5: kernels",
                                       "srun: Step created for step=#",
                                       "3: srun: error: step=# is no training step",
                                       "saved checkpoint step=#",
                                       "Finished saving the checkpoint in 2.91 seconds.",
                                       "resumed from checkpoint step=#",
                                       " 40%|####      | #/1000 [00:02<00:38,  2.45it/s]",
                                       " 40%|####      | 5/10 [00:02<00:38,  2.45it/s]",
                                       "45/1000 [00:02<00:38,  2.45it/s, step=#]",
                                       "nothing of interest",
                                       "max_step=# global_step=#",
                                       ""};
  std::string line = forms[(*random)() % forms.size()];
  for (size_t at; (at = line.find('#')) != std::string::npos && line[0] != ' ';) {
    line.replace(at, 1, number);
  }
  if (line[0] == ' ' && line.find("#/1000") != std::string::npos) {
    line.replace(line.find("#/1000"), 1, number);
  }
  return line;
}

TEST(LazySteps, AreThoseThatAReaderOfEveryLineFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> lines;
    std::string log;
    const size_t count = 1 + random() % 60;
    const bool coloured = round % 3 == 0;
    for (size_t i = 0; i < count; ++i) {
      lines.push_back(some_line(&random));
      std::string shown = lines.back();
      if (coloured && shown.size() > 4) shown.insert(random() % shown.size(), "\x1b[1;36m");
      log += shown + (random() % 8 == 0 ? "\r" : "\n");
    }
    const Progress expected = read_every_line(lines);
    Stream stream(test_grammar());
    const size_t piece = 1 + random() % (round % 2 == 0 ? 50 : 5000);
    for (size_t at = 0; at < log.size(); at += piece) {
      stream.feed(std::string_view(log).substr(at, piece));
    }
    stream.finish();
    const Progress& found = stream.progress();
    ASSERT_EQ(found.first_step, expected.first_step) << log;
    ASSERT_EQ(found.last_step, expected.last_step) << log;
    ASSERT_EQ(found.last_checkpoint, expected.last_checkpoint) << log;
    ASSERT_EQ(found.resumed_from, expected.resumed_from) << log;
    ASSERT_EQ(found.interval, expected.interval) << log;
  }
}

TEST(LazySteps, AFarAwayStepIsFoundFromEitherEnd) {
  std::string gap;
  while (gap.size() < 300'000) gap += "nothing to see on this line, nor on the next\n";
  Stream stream(test_grammar());
  stream.feed(gap + "step=10\n" + gap + "step=20\nstep=40\n" + gap + "step=50\n" + gap);
  stream.finish();
  EXPECT_EQ(stream.progress().first_step, 10);
  EXPECT_EQ(stream.progress().last_step, 50);
  EXPECT_EQ(stream.progress().interval, 20);
}

// Two entries that look at the same lines, of which the first is a mere remark.
class Retiring : public testing::Test {
 protected:
  static Grammar grammar(const std::string& role) {
    const std::string toml =
        "[[pattern]]\nid = 'a.remark'\nregex = 'ring [0-9]+ slow'\ntriggers = ['ring ']\npriority "
        "= 1\n"
        "role = '" +
        role +
        "'\nexample = 'ring 5 slow'\n"
        "[[pattern]]\nid = 'b.slow'\nregex = '[0-9]+ slow'\ntriggers = [' slow']\nrole = 'cause'\n"
        "kind = 'fabric_fault'\nexample = '5 slow'\n";
    const std::string directory = testing::TempDir() + "/retiring-" + role;
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/zz_test.toml") << toml;
    return Grammar::load(directory).value();
  }
  static size_t count(const Stream& stream, const std::string& id) {
    return static_cast<size_t>(std::count_if(stream.facts().begin(), stream.facts().end(),
                                             [&](const Fact& fact) { return fact.pattern == id; }));
  }
};

TEST_F(Retiring, ARemarkIsKeptThirtyTwoTimesAndStillTakesItsText) {
  const Grammar remarks = grammar("context");
  Stream stream(remarks);
  for (int i = 0; i < 1000; ++i) stream.feed("ring " + std::to_string(i) + " slow\n");
  EXPECT_EQ(count(stream, "a.remark"), kMaxAlike);
  EXPECT_EQ(stream.facts().front().line, 1);
  EXPECT_EQ(count(stream, "b.slow"), 0U);
  stream.feed("only 7 slow\n");
  EXPECT_EQ(count(stream, "b.slow"), 1U);
}

TEST_F(Retiring, WhereAMessageBeginsIsKnownBehindManyUselessLiterals) {
  const Grammar remarks = grammar("context");
  Stream stream(remarks);
  for (int i = 0; i < 40; ++i) stream.feed("ring " + std::to_string(i) + " slow\n");
  std::string rings;
  for (int i = 0; i < 50; ++i) rings += "ring ";
  stream.feed("head srun: " + rings + "x 7 slow\n");
  ASSERT_EQ(count(stream, "b.slow"), 1U);
  EXPECT_TRUE(stream.facts().back().text.starts_with("srun: ring")) << stream.facts().back().text;
}

TEST_F(Retiring, ACauseIsKeptHoweverOftenItIsSaid) {
  const Grammar causes = grammar("cause");
  Stream stream(causes);
  for (int i = 0; i < 1000; ++i) stream.feed("ring " + std::to_string(i) + " slow\n");
  EXPECT_EQ(count(stream, "a.remark"), 1000U);
}

TEST_F(Retiring, WhatTheStoreRefusesForeverHidesNothingThatComesLater) {
  const Grammar causes = grammar("cause");
  Stream stream(causes);
  for (int i = 0; i < 10000; ++i) stream.feed("ring " + std::to_string(i) + " slow\n");
  EXPECT_EQ(count(stream, "a.remark"), kMaxFacts / 2);
  EXPECT_EQ(count(stream, "b.slow"), 0U);
  stream.feed("ring 1 slow srun: error: Node failure on nid1\nonly 7 slow\n");
  EXPECT_EQ(count(stream, "b.slow"), 1U);
  EXPECT_EQ(stream.facts()[stream.facts().size() - 2].host, "nid1");
}

}  // namespace
}  // namespace ezpz::evidence
