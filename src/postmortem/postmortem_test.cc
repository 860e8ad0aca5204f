// A log, and a job's directory, judged after the fact.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "failover/record_json.h"
#include "journal/event.h"
#include "postmortem/log_file.h"
#include "postmortem/replay.h"
#include "postmortem/tell.h"

namespace ezpz::postmortem {
namespace {

namespace fs = std::filesystem;

const evidence::Grammar& grammar() {
  static const evidence::Grammar loaded = evidence::Grammar::load().value();
  return loaded;
}

const NodeNaming kNaming{{".hsn.*"}, {"-hsn#"}};

Autopsy judge(const std::string& log, Circumstances known = {}) {
  known.naming = kNaming;
  evidence::Stream stream(grammar());
  stream.feed(log);
  stream.finish();
  return examine(record_of(stream, known), kNaming, grammar());
}

std::vector<Node> hosts(const std::vector<std::string>& names) {
  return make_nodes(names, kNaming);
}

constexpr const char* kKilled =
    "step=40 loss=2.1\n"
    "saved checkpoint step=40\n"
    "step=47 loss=2.0\n"
    "srun: error: nid001306: tasks 4-7: Killed\n"
    "srun: launch/slurm: _step_signal: Terminating StepId=2.1\n"
    "srun: error: nid001304: tasks 0-3: Terminated\n";

TEST(Postmortem, ABareLogNamesTheHostTheLineAndWhatToDo) {
  const std::string text = tell(judge(kKilled));
  for (const char* part :
       {"node failure: nid001306 lost ranks 4-7", "do:   swap nid001306 for a spare and relaunch",
        "steps 40 to 47, checkpoint 40", "line 4     srun: error: nid001306: tasks 4-7: Killed",
        "set aside", "after the teardown began (line 5)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Postmortem, TheJsonHoldsTheContractsKeysAndNullForWhatIsUnknown) {
  const Json json = to_json(judge(kKilled));
  EXPECT_EQ(json.at("verdict"), "node_failure");
  EXPECT_EQ(json.at("action"), "swap");
  EXPECT_EQ(json.at("culprits"), Json::array({"nid001306"}));
  EXPECT_TRUE(json.at("rc").is_null());
  EXPECT_TRUE(json.at("walltime_left_s").is_null());
  EXPECT_EQ(json.at("progress").at("first"), 40);
  EXPECT_EQ(json.at("progress").at("last"), 47);
  EXPECT_EQ(json.at("progress").at("last_checkpoint"), 40);
  const Json& fact = json.at("facts").at(0);
  EXPECT_EQ(fact.at("line"), 4);
  EXPECT_EQ(fact.at("offset"), std::string(kKilled).find("srun"));
  EXPECT_EQ(fact.at("host"), "nid001306");
  EXPECT_TRUE(fact.at("rank").is_null());
  EXPECT_EQ(fact.at("ranks"), "4-7");
  EXPECT_EQ(fact.at("used"), true);
}

TEST(Postmortem, OnlyTheGivenHostsCanBeToBlame) {
  Circumstances known;
  known.active = hosts({"nid000001", "nid000002"});
  const Autopsy autopsy = judge(kKilled, known);
  EXPECT_TRUE(autopsy.verdict.culprits.empty());
  known.active = hosts({"nid001304", "nid001306"});
  EXPECT_EQ(judge(kKilled, known).verdict.culprits.size(), 1U);
}

TEST(Postmortem, SpellingsOfOneNodeAreOneNode) {
  const Autopsy autopsy = judge(
      "srun: error: Node failure on x1822c7s6b0n0-hsn0.hsn.cm.siteb.example\n"
      "srun: error: Node failure on x1822c7s6b0n0\n");
  ASSERT_EQ(autopsy.verdict.culprits.size(), 1U);
  EXPECT_EQ(autopsy.verdict.culprits[0].host, "x1822c7s6b0n0");
}

TEST(Postmortem, TheReturnCodeDecidesWhereTheLogIsSilent) {
  Circumstances known;
  EXPECT_EQ(judge("step=1\n", known).verdict.kind, Kind::unknown);
  known.rc = 0;
  EXPECT_EQ(judge("step=1\n", known).verdict.kind, Kind::success);
  known.rc = 3;
  EXPECT_EQ(judge("step=1\n", known).verdict.kind, Kind::unknown);
}

TEST(Postmortem, SeveralLogsGiveALineEach) {
  const std::string text = table({{"a.log", judge(kKilled)}, {"b.log", judge("")}});
  EXPECT_NE(text.find("a.log  node_failure        swap"), std::string::npos) << text;
  EXPECT_NE(text.find("node failure: nid001306 lost ranks 4-7"), std::string::npos) << text;
  EXPECT_NE(text.find("b.log  unknown"), std::string::npos) << text;
}

TEST(Postmortem, HostileBytesAreNotPrintedRaw) {
  const std::string text =
      tell(judge("ValueError: \x1b]0;owned\a\x01 \xff\nsrun: error: Node failure on a1\n"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x01'), std::string::npos);
}

// ---- a job's directory

class JobDir {
 public:
  JobDir() : path_(fs::temp_directory_path() / ("ezpz_replay_test." + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~JobDir() { fs::remove_all(path_); }
  JobDir(const JobDir&) = delete;
  JobDir& operator=(const JobDir&) = delete;

  void add(const char* name, const Json& context) {
    journal_ += journal::format_event(1000, name, context);
    std::ofstream(path_ / "journal.jsonl") << journal_;
  }
  void log(const std::string& text) { std::ofstream(path_ / "attempt-1.log") << text; }
  Result<Replay> replayed() const {
    return replay(path_.string(), grammar(), [](const std::string&) { return kNaming; });
  }

 private:
  fs::path path_;
  std::string journal_;
};

verdict::AttemptRecord killed_attempt() {
  evidence::Stream stream(grammar());
  stream.feed(kKilled);
  stream.finish();
  Circumstances known;
  known.rc = 143;
  known.active = hosts({"nid001304", "nid001306"});
  known.naming = kNaming;
  verdict::AttemptRecord record = record_of(stream, known);
  record.started_s = 100;
  record.ended_s = 200;
  record.scheduler.end_time_s = 5000;
  return record;
}

void write_job(JobDir* job, const verdict::AttemptRecord& record, const char* verdict,
               const Json& culprits) {
  job->add("start", {{"job_id", "57"}, {"machine", "perlmutter"}});
  job->add("attempt_end", failover::to_json(record));
  job->add("verdict", {{"attempt", 1}, {"verdict", verdict}, {"culprits", culprits}});
  job->add("decision", {{"attempt", 1}, {"action", "swap"}, {"why", "it died"}});
  job->add("stop", {{"reason", "exhausted"}});
}

const Json kCulprit = Json::array({{{"host", "nid001306"}}});

TEST(Replay, TheLogIsJudgedAnewAndAgreesWithTheRecord) {
  JobDir job;
  write_job(&job, killed_attempt(), "node_failure", kCulprit);
  job.log(kKilled);
  const Replay replay = job.replayed().value();
  ASSERT_EQ(replay.attempts.size(), 1U);
  EXPECT_EQ(replay.attempts[0].log, "attempt-1.log");
  EXPECT_TRUE(replay.attempts[0].agrees());
  EXPECT_EQ(to_json(replay).at("attempts").at(0).at("walltime_left_s"), 4800);
  EXPECT_NE(tell(replay).find("then: swap: it died"), std::string::npos);
}

TEST(Replay, ARecordThatSaysOtherwiseIsToldApart) {
  JobDir job;
  write_job(&job, killed_attempt(), "walltime", Json::array());
  job.log(kKilled);
  const Replay replay = job.replayed().value();
  EXPECT_FALSE(replay.attempts[0].agrees());
  EXPECT_EQ(to_json(replay).at("agrees"), false);
  EXPECT_NE(tell(replay).find("NOTE: the record says walltime"), std::string::npos);
}

TEST(Replay, WithoutItsLogTheJournalsFactsAreJudged) {
  JobDir job;
  write_job(&job, killed_attempt(), "node_failure", kCulprit);
  const Replay replay = job.replayed().value();
  EXPECT_EQ(replay.attempts[0].log, "");
  EXPECT_TRUE(replay.attempts[0].agrees());
}

TEST(Replay, WhatTheSchedulerSaidCounts) {
  verdict::AttemptRecord record = killed_attempt();
  record.scheduler.job_state = "TIMEOUT";
  JobDir job;
  write_job(&job, record, "walltime", Json::array());
  job.log(kKilled);
  EXPECT_TRUE(job.replayed().value().attempts[0].agrees());
}

TEST(Replay, OurOwnSignalKeepsItsPlaceAmongTheLinesOfTheLog) {
  verdict::AttemptRecord record = killed_attempt();
  Fact ours;
  ours.source = Source::self;
  ours.pattern = "self.stop";
  ours.event = Event::teardown;
  ours.kind = Kind::cancelled;
  record.facts.insert(record.facts.begin(), ours);  // before the first line of evidence
  const std::vector<Fact> output(record.facts.begin() + 1, record.facts.end());
  EXPECT_EQ(with_output_facts(record, output).facts.front().source, Source::self);
  std::swap(record.facts[0], record.facts[1]);
  const std::vector<Fact> merged = with_output_facts(record, output).facts;
  EXPECT_EQ(merged[0].line, 4);
  EXPECT_EQ(merged[1].source, Source::self);
  EXPECT_EQ(merged.size(), record.facts.size());
}

TEST(Replay, AJobThatStillRunsIsAnErrorThatSaysWhatToDo) {
  JobDir job;
  job.add("start", {{"job_id", "57"}});
  const Result<Replay> replay = job.replayed();
  ASSERT_FALSE(replay);
  EXPECT_NE(replay.error().one_line().find("--follow"), std::string::npos);
}

TEST(LogFile, ADirectoryAndAMissingFileAreErrors) {
  EXPECT_FALSE(LogFile::open("/"));
  EXPECT_FALSE(LogFile::open("/nowhere/x.log"));
}

}  // namespace
}  // namespace ezpz::postmortem
