#include "evidence/stream.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "evidence/grammar_tables.h"
#include "evidence/test_grammar.h"

namespace ezpz::evidence {
namespace {

std::string show(const Fact& fact) {
  std::ostringstream text;
  text << fact.line << '@' << fact.offset << ' ' << fact.pattern << ' ' << to_string(fact.kind)
       << ' ' << who(fact) << " label=" << fact.label << " signal=" << fact.signal
       << " code=" << fact.code << " step_id=" << fact.step_id << " reason=" << fact.reason << " | "
       << fact.text;
  return text.str();
}

// Everything a stream knows, as text.
std::string show(const Stream& stream) {
  const auto or_none = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : "none";
  };
  std::ostringstream text;
  for (const Fact& fact : stream.facts()) text << show(fact) << '\n';
  const Progress& progress = stream.progress();
  text << "steps " << or_none(progress.first_step) << ".." << or_none(progress.last_step)
       << " interval " << or_none(progress.interval) << " checkpoint "
       << or_none(progress.last_checkpoint) << " resumed " << or_none(progress.resumed_from)
       << " earlier runs to " << or_none(progress.earlier_runs_end) << " survived "
       << or_none(progress.survived_line) << '\n';
  for (const auto& [host, ranks] : stream.topology().hosts()) {
    text << host << ':';
    for (const int rank : ranks) text << ' ' << rank;
    text << '\n';
  }
  text << "world " << stream.topology().world_size().value_or(-1) << " lines " << stream.lines()
       << " bytes " << stream.bytes() << '\n';
  return text.str();
}

// A stream that was fed text, in one piece.
class Fed : public Stream {
 public:
  explicit Fed(const std::string& text) : Stream(test_grammar()) {
    feed(text);
    finish();
  }
};

std::string in_chunks(const std::string& text, const std::vector<size_t>& cuts) {
  Stream stream(test_grammar());
  size_t at = 0;
  for (const size_t cut : cuts) {
    stream.feed(std::string_view(text).substr(at, cut - at));
    at = cut;
  }
  stream.feed(std::string_view(text).substr(at));
  stream.finish();
  return show(stream);
}

const std::string& hard_text() {
  using namespace std::string_literals;
  static const std::string text =
      "srun: launching StepId=2.1 on host nid001304, 4 tasks: [0-3]\n"
      "srun: launching StepId=2.1 on host nid001306, 4 tasks: [4-7]\n"
      "\x1b[32m['nid001304']\x1b[0m[device='cuda'][node=0/1][local_rank=1/3][rank=1/7]\n"
      "resumed from checkpoint step=40\r\n"
      "st\x1b[1mep=\x1b[0m41 loss=2.5\n"
      "\xff\xfe\x80 not text \xc3\x28 \xed\xa0\x80\n"
      "nul \0 st\0ep=42\n"
      "  5%|#         | 5/100 [00:01<00:10, 4.1it/s]\r 50%|#####     | 50/100 [00:01<00:10, "
      "4.1it/s]\r100%|##########| 100/100 [00:01<00:10, 4.1it/s]\n"s +
      "step 43 "s + std::string(70000, 'x') + " srun: error: Node failure on never\n"s +
      std::string(kMaxLine - 40, 'y') + " srun: error: Node failure on nid00000123456789\n"s +
      "saved checkpoint step=40\n\n\r\r\n"
      "4: [rank4]: ValueError: x\n"
      "srun: er\x1b[0mror: nid001306: tasks 4-7: \x1b[31mKilled\x1b[0msrun: error: nid001304: task "
      "2: Terminated\n"
      "\x1b]0;title\asrun: error: nid001304: task 1: Exited with exit code 3\n"
      "slurmstepd-nid001304: error: *** STEP 2.1 ON nid001304 CANCELLED AT 2031-07-03T02:59:56 "
      "***\n"
      "srun: error: Node failure on nid001306"s;
  return text;
}

TEST(Stream, WhoHearsOfAFactMayNoteOthersMeanwhile) {
  Stream stream(test_grammar());
  std::vector<std::string> heard;
  stream.on_fact([&](const Fact& fact) {
    for (int i = 0; i < 200; ++i) {
      Fact noted;
      noted.source = Source::self;
      noted.pattern = "self." + std::to_string(heard.size()) + "." + std::to_string(i);
      stream.note(std::move(noted));
    }
    heard.push_back(fact.host);
  });
  stream.feed("srun: error: Node failure on nid001306\nsrun: error: Node failure on nid001307\n");
  stream.finish();
  EXPECT_EQ(heard, (std::vector<std::string>{"nid001306", "nid001307"}));
}

TEST(Stream, ChunkBoundariesNeverChangeAnything) {
  const std::string& text = hard_text();
  const std::string whole = in_chunks(text, {});
  for (size_t cut = 0; cut <= text.size();
       cut += cut < 1500 || cut + 1500 > text.size() ? 1 : 997) {
    ASSERT_EQ(in_chunks(text, {cut}), whole) << "cut at " << cut;
  }
  std::vector<size_t> every_byte(text.size());
  for (size_t i = 0; i < text.size(); ++i) every_byte[i] = i;
  ASSERT_EQ(in_chunks(text, every_byte), whole);
  std::mt19937 random(20311129);
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> cuts;
    const size_t longest = size_t{1} << random() % 17;
    for (size_t at = 0; (at += 1 + random() % longest) < text.size();) cuts.push_back(at);
    ASSERT_EQ(in_chunks(text, cuts), whole) << "round " << round;
  }
}

TEST(Stream, ChunkBoundariesNeverChangeWhichRunIsTheLast) {
  std::string text;
  for (int step = 1; step < 60; ++step) text += "step=" + std::to_string(step) + " loss=2.5\n";
  text +=
      "srun: error: nid001306: task 5: Killed\nstep=60 loss=2.5\nstep=61 loss=2.5\n"
      "SLURM_RESTART_COUNT=1\nresumed from checkpoint step=40\n";
  for (int step = 41; step < 90; ++step) text += "step=" + std::to_string(step) + " loss=2.5\n";
  text += "srun: error: Node failure on nid001304\nstep=90 loss=2.5\n";
  const std::string whole = in_chunks(text, {});
  EXPECT_NE(whole.find("earlier runs to 63 survived 63"), std::string::npos) << whole;
  std::mt19937 random(20311129);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ASSERT_EQ(in_chunks(text, {cut}), whole) << "cut at " << cut;
  }
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> cuts;
    const size_t longest = size_t{1} << random() % 9;
    for (size_t at = 0; (at += 1 + random() % longest) < text.size();) cuts.push_back(at);
    ASSERT_EQ(in_chunks(text, cuts), whole) << "round " << round;
  }
}

TEST(Stream, TheHardTextIsReadRight) {
  const Fed stream(hard_text());
  std::vector<std::string> patterns;
  for (const Fact& fact : stream.facts()) patterns.push_back(fact.pattern);
  const std::vector<std::string> expected{
      "srun.placement",       "srun.placement",   "topology.ezpz_banner", "srun.node_failure",
      "python.exception",     "srun.task_killed", "srun.task_terminated", "srun.task_exit",
      "slurmstepd.cancelled", "srun.node_failure"};
  EXPECT_EQ(patterns, expected);
  EXPECT_EQ(stream.progress().first_step, 41);
  EXPECT_EQ(stream.progress().last_step, 43);
  EXPECT_EQ(stream.progress().last_checkpoint, 40);
  EXPECT_EQ(stream.progress().resumed_from, 40);
  EXPECT_EQ(stream.topology().host_of(6), "nid001306");
  EXPECT_EQ(stream.topology().world_size(), 8);
}

TEST(Stream, Incident12OneUndecodableByteDoesNotDeafenTheLoop) {
  const Fed stream(
      "step=1 loss=2\n\xff\xfe\x80 \xc3\x28\nstep=2 loss=1\n\x80srun: error: nid001306: task 5: "
      "Killed\n");
  EXPECT_EQ(stream.progress().last_step, 2);
  ASSERT_EQ(stream.facts().size(), 1U);
  EXPECT_EQ(stream.facts()[0].host, "nid001306");
}

TEST(Stream, Incident13ColoursInsideTokensHideNothing) {
  const Fed stream(
      "\x1b[36miter\x1b[0m=\x1b[1;32m42\x1b[0m lo\x1b[31mss\x1b[0m=2.5\n"
      "srun: err\x1b[31mor: nid0013\x1b[0m06: task 5: Exi\x1b[Kted with exit code 1\x1b[0m\n");
  EXPECT_EQ(stream.progress().last_step, 42);
  ASSERT_EQ(stream.facts().size(), 1U);
  EXPECT_EQ(stream.facts()[0].host, "nid001306");
  EXPECT_EQ(stream.facts()[0].code, 1);
  EXPECT_EQ(stream.facts()[0].text, "srun: error: nid001306: task 5: Exited with exit code 1");
}

TEST(Stream, Incident14StepsAreKnownInEverySpelling) {
  for (const char* line : {"step=5", "step: 5", "step 5", "iter=5", "iter: 5", "iteration 5",
                           "iteration: 5", "Iteration [5/100]", "\"step\": 5", "global_step=5",
                           "  5%|5         | 5/100 [00:02<00:38,  2.45it/s]"}) {
    EXPECT_EQ(Fed(line + std::string("\n")).progress().last_step, 5) << line;
  }
}

TEST(Stream, LineNumbersAndOffsetsAreThoseOfTheLog) {
  const std::string bar(100, '#');
  const Fed stream("one\ntwo\r\n" + bar + "\r" + bar +
                   "\rsrun: error: Node failure on a1\nsrun: error: Node failure on b2\n");
  ASSERT_EQ(stream.facts().size(), 2U);
  EXPECT_EQ(stream.facts()[0].line, 3);
  EXPECT_EQ(stream.facts()[0].offset, 9);
  EXPECT_EQ(stream.facts()[1].line, 4);
  EXPECT_EQ(stream.facts()[1].offset, 9 + 202 + 32);
  EXPECT_EQ(stream.lines(), 4);
}

TEST(Stream, AnUnfinishedLastLineIsMatchedAtTheEnd) {
  Stream stream(test_grammar());
  stream.feed("step=1\nsrun: error: Node failure on nid001306");
  EXPECT_TRUE(stream.facts().empty());
  stream.finish();
  ASSERT_EQ(stream.facts().size(), 1U);
  EXPECT_EQ(stream.facts()[0].line, 2);
  EXPECT_EQ(stream.lines(), 2);
  stream.finish();
  EXPECT_EQ(stream.facts().size(), 1U);
}

TEST(Stream, FactsAreToldBeforeFeedReturns) {
  Stream stream(test_grammar());
  std::vector<std::string> told;
  stream.on_fact([&](const Fact& fact) { told.push_back(fact.pattern); });
  stream.feed("srun: error: nid001306: task 5: Kil");
  EXPECT_TRUE(told.empty());
  stream.feed("led\n");
  EXPECT_EQ(told, std::vector<std::string>{"srun.task_killed"});
}

TEST(Stream, ProgressIsToldOncePerFeed) {
  Stream stream(test_grammar());
  std::vector<int64_t> told;
  stream.on_progress([&](const Progress& progress) { told.push_back(*progress.last_step); });
  stream.feed("step=1\nstep=2\nstep=3\n");
  stream.feed("nothing\n");
  stream.feed("step=4");
  stream.finish();
  EXPECT_EQ(told, (std::vector<int64_t>{3, 4}));
}

TEST(Stream, ANotedFactKeepsItsPlaceInTheOrder) {
  Stream stream(test_grammar());
  stream.feed("srun: error: nid001306: task 5: Killed\n");
  Fact lost;
  lost.source = Source::scheduler;
  lost.pattern = "scheduler.node_down";
  lost.host = "nid001306";
  stream.note(lost);
  stream.feed("srun: error: nid001304: task 1: Terminated\n");
  ASSERT_EQ(stream.facts().size(), 3U);
  EXPECT_EQ(stream.facts()[1].pattern, "scheduler.node_down");
}

TEST(Stream, ALineLongerThanTheLimitIsMatchedOnItsBeginning) {
  const std::string tail(2 * kMaxLine, 'x');
  const Fed stream("srun: error: Node failure on a1 " + tail +
                   " srun: error: Node failure on b2\n" + "srun: error: Node failure on c3\n");
  ASSERT_EQ(stream.facts().size(), 2U);
  EXPECT_EQ(stream.facts()[0].host, "a1");
  EXPECT_EQ(stream.facts()[0].text.size(), 400U);
  EXPECT_EQ(stream.facts()[1].host, "c3");
  EXPECT_EQ(stream.facts()[1].line, 2);
}

TEST(Stream, AMatchDeepInALongLineIsShown) {
  const Fed stream(std::string(5000, 'x') + " srun: error: Node failure on a1 " +
                   std::string(5000, 'y') + "\n");
  ASSERT_EQ(stream.facts().size(), 1U);
  EXPECT_TRUE(stream.facts()[0].text.starts_with("srun: error: Node failure on a1 yyy"));
  EXPECT_LE(stream.facts()[0].text.size(), 400U);
}

TEST(Stream, TheTextOfAFactIsPrintable) {
  const Fed stream("srun: error: Node failure on a1 \x01\x07\x7f\n");
  ASSERT_EQ(stream.facts().size(), 1U);
  EXPECT_EQ(stream.facts()[0].text, "srun: error: Node failure on a1 ???");
}

TEST(Stream, AFloodOfErrorsLeavesRoomForTheOneThatMatters) {
  Stream stream(test_grammar());
  for (int i = 0; i < 20000; ++i) {
    stream.feed("srun: error: nid" + std::to_string(i) + ": task 1: Exited with exit code 1\n");
  }
  stream.feed("srun: error: Node failure on nid001306\n");
  EXPECT_LE(stream.facts().size(), kMaxFacts);
  EXPECT_EQ(stream.facts().back().pattern, "srun.node_failure");
}

TEST(Stream, AnEvaluationsBarDoesNotSetTheTrainingBack) {
  const Fed stream(
      " 40%|####      | 40/100 [00:02<00:38,  2.45it/s]\r"
      " 50%|#####     | 5/10 [00:02<00:38,  2.45it/s]\r"
      "100%|##########| 10/10 [00:02<00:38,  2.45it/s]\n");
  EXPECT_EQ(stream.progress().last_step, 40);
}

TEST(Stream, ACheckpointWithoutANumberIsThatOfTheLastStep) {
  const Fed stream(
      "step: 20  loss: 2\nFinished saving the checkpoint in 2.91 seconds.\nstep: 30\n");
  EXPECT_EQ(stream.progress().last_checkpoint, 20);
  EXPECT_EQ(stream.progress().last_step, 30);
}

TEST(Stream, ACheckpointWrittenLateDoesNotSetTheStepBack) {
  const Fed stream("step=45\nsaved checkpoint step=40\n");
  EXPECT_EQ(stream.progress().last_step, 45);
  EXPECT_EQ(stream.progress().last_checkpoint, 40);
}

TEST(Stream, TheProgressExamplesOfTheGrammarHold) {
  const FileProgress& rules = test_grammar().tables().progress_rules;
  EXPECT_GE(rules.examples.size(), 20U);
  for (const ExampleLine& example : rules.examples) {
    const Fed stream(example.line + "\n");
    ASSERT_TRUE(stream.progress().last_step.has_value()) << example.line;
    EXPECT_EQ(std::to_string(*stream.progress().last_step), example.expect.at("step"))
        << example.line;
  }
  for (const std::string& line : rules.counterexamples) {
    EXPECT_FALSE(Fed(line + "\n").progress().last_step.has_value()) << line;
  }
}

TEST(Stream, EveryLabelExampleIsTakenOff) {
  for (const Label& label : test_grammar().tables().labels) {
    for (const ExampleLine& example : label.spec.examples) {
      std::vector<std::string_view> groups;
      EXPECT_TRUE(label.regex.find(example.line, 0, &groups)) << example.line;
    }
  }
}

TEST(Stream, ManyRanksInALineAreBounded) {
  const Fed stream("srun: error: nid1: tasks 0-2000000000: Killed\n");
  ASSERT_EQ(stream.facts().size(), 1U);
  EXPECT_LE(stream.facts()[0].ranks.size(), 4096U);
}

// Found by fuzzing: in one piece the number was taken for a part of a word.
TEST(Stream, AStepWithAMessageGluedToItIsTheSameHoweverItIsCut) {
  const std::string log = "step=1 loss=2\nsaved, step=4srun: error: nid1: task 1: Killed\n";
  for (const size_t length : {size_t{1}, size_t{7}, log.size()}) {
    Stream stream(test_grammar());
    for (size_t at = 0; at < log.size(); at += length) stream.feed(log.substr(at, length));
    stream.finish();
    EXPECT_EQ(stream.progress().last_step, 4) << length;
  }
}

TEST(Stream, OfWhatEveryRankSaysOfItsNetworkOneWordAHostIsKept) {
  const Grammar grammar = Grammar::load().value();
  Stream stream(grammar);
  for (int round = 0; round < 40; ++round) {
    for (const char* host : {"nid001", "nid002"}) {
      const std::string at = std::string(host) + ":1:2 [0] NCCL INFO ";
      stream.feed(at + "Using network AWS Libfabric\n");
      stream.feed(at + "Channel 00/0 : 3[3] -> 4[0] [send] via NET/AWS Libfabric/0/GDRDMA\n");
    }
  }
  stream.feed("nid003:1:2 [0] NCCL INFO Using network Socket\n");
  stream.finish();
  std::vector<std::string> said;
  for (const Fact& fact : stream.facts()) {
    if (fact.event == Event::network) said.push_back(fact.label + " " + fact.reason);
  }
  EXPECT_EQ(said, (std::vector<std::string>{"nid001 AWS Libfabric", "nid002 AWS Libfabric",
                                            "nid003 Socket"}));
}

// ---- several runs in one log

TEST(Stream, AnotherRunIsOneThatSomebodySaysBeganAndThatMadeAStep) {
  const std::string first = "step=1180 loss=3\nsrun: error: Node failure on cdr-g09\n";
  EXPECT_FALSE(Fed(first + "step=1181 loss=3\n").progress().earlier_runs_end.has_value());
  EXPECT_FALSE(
      Fed(first + "resumed from checkpoint step=1000\n").progress().earlier_runs_end.has_value());
  EXPECT_EQ(Fed(first + "resumed from checkpoint step=1000\nstep=1001 loss=3\n")
                .progress()
                .earlier_runs_end,
            2);
  EXPECT_EQ(Fed(first + "step=1181 loss=3\nSLURM_RESTART_COUNT=1\nstep=1 loss=3\n")
                .progress()
                .earlier_runs_end,
            4);
}

TEST(Stream, AnEndThatStepsFollowForAWhileWasSurvived) {
  std::string log =
      "iter=1 loss=3\niter=2 loss=3\niter=3 loss=3\n"
      "srun: error: k014: task 1: Out Of Memory\n";
  for (int step = 4; step < 12; ++step) log += "iter=" + std::to_string(step) + " loss=3\n";
  EXPECT_FALSE(Fed(log).progress().survived_line.has_value());
  for (int step = 12; step < 20; ++step) log += "iter=" + std::to_string(step) + " loss=3\n";
  EXPECT_EQ(Fed(log).progress().survived_line, 4);
}

}  // namespace
}  // namespace ezpz::evidence
