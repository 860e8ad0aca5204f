#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "failover/job_dir.h"
#include "failover/record_json.h"
#include "failover/report.h"
#include "journal/event.h"

namespace ezpz::failover {
namespace {

verdict::AttemptRecord sample() {
  verdict::AttemptRecord record;
  record.attempt = 3;
  record.active = {"a", "b"};
  record.host_of_rank = {{0, "a"}, {1, "b"}};
  record.retired_earlier = {"c"};
  record.exit = Exit{.code = -1, .signal = 9};
  record.ending = verdict::Ending::watchdog;
  record.progress.first_step = 1;
  record.progress.last_step = 42;
  record.progress.last_checkpoint = 40;
  record.scheduler.end_time_s = 1234.5;
  record.scheduler.node_states = {{"a", "IDLE"}};
  record.scheduler.trouble = {"nodes: no answer in time"};
  record.started_s = 100;
  record.ended_s = 200;
  Fact fact;
  fact.line = 12;
  fact.offset = 345;
  fact.text = "srun: error: b: task 1: Killed";
  fact.pattern = "srun.task_death";
  fact.kind = Kind::node_failure;
  fact.role = Role::cause;
  fact.event = Event::death;
  fact.host = "b";
  fact.ranks = {1};
  fact.signal = 9;
  record.facts = {fact};
  return record;
}

TEST(RecordJson, AnAttemptReadBackIsTheAttemptWritten) {
  const Json once = to_json(sample());
  const verdict::AttemptRecord back = attempt_from_json(once);
  EXPECT_EQ(dump(to_json(back)), dump(once));
  EXPECT_EQ(back.facts.at(0).ranks, (std::vector<int>{1}));
  EXPECT_EQ(back.host_of_rank.at(1), "b");
}

TEST(RecordJson, AJournalOfAnotherShapeIsReadWithoutHarm) {
  for (const char* text : {"{}", R"({"facts": 3, "exit": [], "active": [1, null]})",
                           R"({"facts": [{"ranks": "x", "kind": "no such"}]})"}) {
    const verdict::AttemptRecord record =
        attempt_from_json(Json::parse(text, nullptr, /*allow_exceptions=*/false));
    EXPECT_EQ(record.attempt, 1);
  }
}

TEST(Report, ItTellsWhoDiedOnWhatEvidenceAndWhatItCost) {
  std::string jsonl;
  const auto add = [&jsonl](double at_s, const char* name, const Json& context) {
    jsonl += journal::format_event(at_s, name, context);
  };
  add(1000, "start", {{"job_id", "57"}, {"machine", "perlmutter"}, {"launcher", "srun"}});
  add(1000, "attempt_start", {{"attempt", 1}});
  add(1100, "attempt_end",
      {{"attempt", 1},
       {"started_s", 1000.0},
       {"ended_s", 1100.0},
       {"progress", {{"first", 1}, {"last", 50}}}});
  add(1100, "verdict",
      {{"attempt", 1},
       {"verdict", "node_failure"},
       {"summary", "node failure: nid1 lost ranks 4-7"},
       {"culprits", {{{"host", "nid1"}, {"evidence", "srun: error: nid1: Killed"}, {"line", 9}}}}});
  add(1100, "swap", {{"attempt", 1}, {"out", "nid1"}, {"in", "nid3"}, {"provenance", "scraped"}});
  add(1102, "attempt_start", {{"attempt", 2}});
  add(1200, "attempt_end",
      {{"attempt", 2},
       {"started_s", 1102.0},
       {"ended_s", 1200.0},
       {"progress", {{"first", 41}, {"last", 100}, {"resumed_from", 40}}}});
  add(1200, "stop", {{"reason", "success"}});
  const Story story = read_story(journal::read_events(jsonl));
  EXPECT_EQ(story.steps_redone, 10);
  EXPECT_NEAR(story.lost_s, 2 + 20, 1e-6);
  const std::string text = tell(story);
  for (const char* part : {"nid1 lost ranks 4-7", "line 9: srun: error: nid1: Killed",
                           "nid1 out (scraped), nid3 in", "steps redone: 10", "success"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

struct JobDirTest : testing::Test {
  std::string folder;
  Loop loop;
  journal::Scribe scribe{loop};
  JobDirTest() {
    char name[] = "/tmp/ezpz-jobdir-test-XXXXXX";
    folder = mkdtemp(name);
    EXPECT_TRUE(scribe.start("ezpz-scribe").ok());
  }
  ~JobDirTest() override { std::filesystem::remove_all(folder); }
};

TEST_F(JobDirTest, AnEarlierRunIsKeptAndTheNewOneLiesBesideIt) {
  {
    const Result<JobDir> first = make_job_dir(scribe, folder + "/logs", "57");
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(first->path, folder + "/logs/failover-57");
  }
  const Result<JobDir> second = make_job_dir(scribe, folder + "/logs", "57");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->run, 2);
  EXPECT_EQ(second->path, folder + "/logs/failover-57.run-2");
}

TEST_F(JobDirTest, AHostileJobIdStaysInsideTheLogDirectory) {
  const Result<JobDir> made = make_job_dir(scribe, folder + "/logs", "../../etc/x y");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->path, folder + "/logs/failover-.._.._etc_x_y");
}

TEST_F(JobDirTest, ALogDirectoryThatIsAFileIsAOneLineError) {
  ASSERT_TRUE(write_file_atomically(folder + "/file", "x").ok());
  const Result<JobDir> made = make_job_dir(scribe, folder + "/file", "57");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().one_line().find("cannot use the log directory"), std::string::npos);
}

}  // namespace
}  // namespace ezpz::failover
