#include "bench/run_info.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/provenance.h"
#include "bench/testing.h"

namespace ezpz::bench {
namespace {

RunInfo a_run() {
  RunInfo run;
  run.written_by = "ezpz 0.1.0";
  run.machine = "perlmutter";
  run.system = "Perlmutter";
  run.scheduler = "slurm";
  run.job_id = "57";
  run.launcher = "srun";
  run.hosts = {"nid1", "nid3"};
  run.world_size = 8;
  run.ranks_per_node = 4;
  run.gpus_per_node = 4;
  run.gpus = 8;
  run.network = {"AWS Libfabric", {"Socket"}, true, "Socket"};
  run.command = {"python3", "train.py", "--model", "agpt-2b"};
  run.config = {{"ranks", "8"}};
  run.versions = {{"ezpz", "0.1.0"}};
  run.git_commit = "0123abcd-dirty";
  run.attempts = {{1, "a", "b", {"nid1", "nid2"}, 8, "node_failure", "nid2 was lost", "swap"},
                  {2, "c", "d", {"nid1", "nid3"}, 8, "success", "", "stop"}};
  run.swaps = {{1, "nid2", "nid3", "scheduler"}};
  run.started = "2026-08-24T13:00:00.000Z";
  run.ended = "2026-08-24T13:08:50.000Z";
  run.end = "success";
  return run;
}

TEST(RunInfo, WhatIsWrittenIsReadBackWhole) {
  const std::string text = to_json_text(a_run());
  const Result<RunInfo> back = run_info_from_json(text, "here");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(to_json_text(*back), text);
  EXPECT_EQ(back->attempts[0].summary, "nid2 was lost");
  EXPECT_EQ(back->swaps[0].provenance, "scheduler");
}

TEST(RunInfo, WhatIsUnknownIsNullAndNotZero) {
  const auto json = nlohmann::json::parse(to_json_text(RunInfo()));
  for (const char* name : {"world_size", "gpus", "gpus_per_node", "nodes", "end", "system"}) {
    EXPECT_TRUE(json[name].is_null()) << name;
  }
}

TEST(RunInfo, ATornFileOrAnothersIsAnError) {
  const std::string text = to_json_text(a_run());
  EXPECT_FALSE(run_info_from_json(text.substr(0, text.size() / 2), "here").ok());
  EXPECT_FALSE(run_info_from_json("{}", "here").ok());
  EXPECT_FALSE(run_info_from_json("[]", "here").ok());
  EXPECT_FALSE(run_info_from_json("", "here").ok());
}

TEST(RunInfo, PartsOfAnotherShapeAreLeftOut) {
  const Result<RunInfo> run = run_info_from_json(
      R"({"format": "ezpz run_info 1", "hosts": "nid1", "gpus": -8, "world_size": 99999999999999999999, "nodes": 2, "attempts": [3, {"attempt": "x"}], "network": [], "command": [1, "a"]})",
      "here");
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->hosts.empty());
  EXPECT_FALSE(run->gpus);
  EXPECT_EQ(run->world_size, 0);
  EXPECT_EQ(run->attempts.size(), 1U);
  EXPECT_EQ(run->command, (std::vector<std::string>{"a"}));
}

TEST(RunInfo, IsWrittenWholeOrNotAtAll) {
  const TestDir dir;
  ASSERT_TRUE(write_run_info(dir.path, a_run()).ok());
  EXPECT_EQ(dir.read("run_info.json"), to_json_text(a_run()));
  EXPECT_FALSE(write_run_info(dir.path + "/nowhere", a_run()).ok());
}

TEST(RunInfo, GpusInUseAreToldOnlyWhereTheyFollow) {
  std::string why;
  EXPECT_EQ(gpus_in_use(8, 2, 4, 4, &why), 8);
  EXPECT_EQ(gpus_in_use(6, 2, 4, 4, &why), 6);   // the last node is not full
  EXPECT_EQ(gpus_in_use(16, 2, 8, 4, &why), 8);  // two ranks share a GPU
  EXPECT_EQ(gpus_in_use(2, 2, 1, 1, &why), 2);
  EXPECT_FALSE(gpus_in_use(2, 2, 1, 4, &why));  // torchrun, perhaps
  EXPECT_NE(why.find("one rank on a node"), std::string::npos);
  EXPECT_FALSE(gpus_in_use(8, 2, 4, 0, &why));
  EXPECT_FALSE(gpus_in_use(0, 0, 4, 4, &why));
}

TEST(Provenance, EzpzsOwnRecordOutranksAllOthers) {
  const TestDir dir;
  ASSERT_TRUE(write_run_info(dir.path, a_run()).ok());
  dir.write("config.json", R"({"MACHINE": "Stale", "WORLD_SIZE_IN_USE": 4})");
  const Provenance found = find_provenance(dir.path);
  EXPECT_EQ(found.source, "run_info.json");
  EXPECT_EQ(found.system, "Perlmutter");
  EXPECT_EQ(found.nodes, 2);
  EXPECT_EQ(found.gpus, 8);
}

TEST(Provenance, ThePythonToolsRecordTellsWhatRanAndNotWhatWasAllocated) {
  const TestDir dir;
  dir.write(
      "run_info.json",
      R"({"Distributed": {"MACHINE": "SunSpot", "NUM_NODES": "4", "NGPUS": "48", "GPUS_PER_NODE": "12", "WORLD_SIZE_IN_USE": "18"}})");
  const Provenance found = find_provenance(dir.path);
  EXPECT_EQ(found.system, "SunSpot");
  EXPECT_EQ(found.nodes, 2);  // 18 ranks of 12 a node
  EXPECT_EQ(found.gpus, 18);
  EXPECT_EQ(found.allocated_nodes, 4);
}

TEST(Provenance, AnAllocationAloneIsNoAnswer) {
  const TestDir dir;
  dir.write("config.json", R"({"MACHINE": "Aurora", "NUM_NODES": 8, "NGPUS": 96})");
  const Provenance found = find_provenance(dir.path);
  EXPECT_EQ(found.source, "config.json");
  EXPECT_FALSE(found.nodes);
  EXPECT_FALSE(found.gpus);
  EXPECT_EQ(found.allocated_gpus, 96);
}

TEST(Provenance, AReportsBulletsAreTakenFromItsSectionOnly) {
  const TestDir dir;
  dir.write("train/report-train.md",
            "# Report\n\n- **MACHINE**: Before\n\n### Distributed\n\n- **MACHINE**: SunSpot\n"
            "- **WORLD_SIZE_IN_USE**: `24`\n- **GPUS_PER_NODE**: 12\n\n## Metrics\n- **MACHINE**: "
            "After\n");
  const Provenance found = find_provenance(dir.path);
  EXPECT_EQ(found.source, "train/report-train.md");
  EXPECT_EQ(found.system, "SunSpot");
  EXPECT_EQ(found.nodes, 2);
  EXPECT_EQ(found.gpus, 24);
}

TEST(Provenance, ADamagedRecordIsToldAndTheNextOneUsed) {
  const TestDir dir;
  dir.write("run_info.json", R"({"Distributed": {"MACHI)");
  dir.write("report.md", "### Distributed\n- **MACHINE**: SunSpot\n");
  const Provenance found = find_provenance(dir.path);
  EXPECT_EQ(found.source, "report.md");
  EXPECT_EQ(found.trouble.size(), 1U);
}

TEST(Provenance, NothingThereIsNothingKnown) {
  const TestDir dir;
  const Provenance found = find_provenance(dir.path);
  EXPECT_EQ(found.source, "");
  EXPECT_FALSE(found.nodes);
  EXPECT_FALSE(found.gpus);
  EXPECT_TRUE(found.trouble.empty());
}

}  // namespace
}  // namespace ezpz::bench
