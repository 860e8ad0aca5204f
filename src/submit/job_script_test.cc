#include "submit/job_script.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace ezpz::submit {
namespace {

JobRequest request() {
  JobRequest r;
  r.nodes = 34;
  r.spares = 2;
  r.ranks_per_node = 4;
  r.time_s = 36 * 3600.0;
  r.name = "train";
  r.queue = "regular";
  r.account = "m1234";
  r.working_dir = "/home/me/run";
  r.log_dir = "/home/me/run/logs";
  r.self_path = "/opt/ezpz/bin/ezpz";
  r.command = {"python3", "train.py", "--lr", "1e-4"};
  return r;
}

// Compares with tests/golden/submit/NAME.txt; EZPZ_UPDATE_GOLDEN=1 writes it instead.
void expect_golden(const std::string& name, const Result<JobScript>& script) {
  ASSERT_TRUE(script.ok()) << script.error().one_line();
  const std::string seen = "submit: " + shell_join(script->submit) + "\n\n" + script->text;
  const std::string path = "tests/golden/submit/" + name + ".txt";
  if (std::getenv("EZPZ_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << seen;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(seen, text.str()) << path;
}

bool has(const Result<JobScript>& script, const std::string& text) {
  return script.ok() && script->text.find(text) != std::string::npos;
}

TEST(Slurm, GoldenScript) {
  JobRequest r = request();
  r.constraint = "gpu&hbm80g";
  r.gpus_per_node = 4;
  r.signal_before_end_s = 120;
  r.modules = {"python/3.11", "nccl/2.24.3"};
  r.venv = "/home/me/venv";
  r.env = {{"COMPILE", ""}, {"HF_TOKEN", "hunter2"}, {"NCCL_DEBUG", "INFO"}, {"OLD", std::nullopt}};
  r.scheduler_flags = {"--reservation=tuesday", "--comment=two words"};
  expect_golden("slurm", write_slurm_script(r));
}

TEST(Slurm, GoldenScriptOfTheLeast) {
  JobRequest r = request();
  r.nodes = 1;
  r.spares = 0;
  r.ranks_per_node.reset();
  r.time_s.reset();
  r.queue = r.account = "";
  expect_golden("slurm_least", write_slurm_script(r));
}

TEST(Pbs, GoldenScript) {
  JobRequest r = request();
  r.select = "system=polaris";
  r.place = "scatter";
  r.filesystems = "home:eagle";
  r.modules = {"conda"};
  r.env = {{"COMPILE", ""}};
  expect_golden("pbs", write_pbs_script(r));
}

TEST(Pbs, GoldenScriptOfAnUnknownMachine) {
  JobRequest r = request();
  r.gpus_per_node = 8;
  expect_golden("pbs_unknown_machine", write_pbs_script(r));
}

TEST(Script, NoWordOfTheCommandBeginsALine) {
  JobRequest r = request();
  r.command = {"echo", "a\n#SBATCH --partition=evil\n#PBS -q evil", "it's", "$(id)", "`id`", ""};
  for (const auto write : {write_slurm_script, write_pbs_script}) {
    const auto script = write(r);
    ASSERT_TRUE(script.ok());
    for (const std::string& line : split_lines(script->text)) {
      EXPECT_EQ(line.find("evil") != std::string::npos && line[0] == '#', false) << line;
    }
  }
}

TEST(Script, WhatADirectiveCannotHoldGoesOnTheCommandLine) {
  JobRequest r = request();
  r.name = "my job";
  r.log_dir = "/home/me/my # logs";
  const auto slurm = write_slurm_script(r);
  EXPECT_EQ(slurm->submit, (Argv{"sbatch", "--parsable", "--job-name=my job",
                                 "--output=/home/me/my # logs/%x-%j.out"}));
  const auto pbs = write_pbs_script(r);
  EXPECT_EQ(pbs->submit, (Argv{"qsub", "-N", "my job", "-o", "/home/me/my # logs/"}));
  EXPECT_FALSE(has(slurm, "#SBATCH --job-name"));
  r.name = "two\nlines";
  EXPECT_FALSE(write_slurm_script(r).ok());
}

TEST(Script, ALaunchOfTheUsersOwnIsRunAsItIs) {
  JobRequest r = request();
  r.spares = 0;
  r.ranks_per_node.reset();
  r.command = {"ezpz", "launch", "--nhosts", "2", "--", "./a.out"};
  EXPECT_TRUE(has(write_slurm_script(r), "exec ezpz launch --nhosts 2 -- ./a.out\n"));
  r.spares = 2;
  EXPECT_FALSE(write_slurm_script(r).ok());
}

TEST(Script, WhatMakesNoSenseIsRefused) {
  JobRequest r = request();
  r.spares = 34;
  EXPECT_FALSE(write_slurm_script(r).ok());
  r = request();
  r.command = {};
  EXPECT_FALSE(write_slurm_script(r).ok());
  r = request();
  r.constraint = "gpu";
  EXPECT_FALSE(write_pbs_script(r).ok());
  r = request();
  r.filesystems = "home";
  EXPECT_FALSE(write_slurm_script(r).ok());
}

TEST(Time, IsReadWhereItIsClear) {
  EXPECT_EQ(parse_time("12:00:00"), 12 * 3600);
  EXPECT_EQ(parse_time("36:00:01"), 36 * 3600 + 1);
  EXPECT_EQ(parse_time("1-12:00:00"), 36 * 3600);
  EXPECT_EQ(parse_time("90m"), 5400);
  EXPECT_EQ(parse_time("2h"), 7200);
  EXPECT_EQ(parse_time("2d"), 2 * 86400);
  for (const char* unclear : {"", "30", "1:30", "1-30", "x", "h", "d", "-1h", "0m", "1:2:3:4",
                              "-1-00:00:00", "99999999999h", "00:00:00"}) {
    EXPECT_FALSE(parse_time(unclear)) << unclear;
  }
}

TEST(Name, IsTheScripts) {
  EXPECT_EQ(default_name({"python3", "-m", "x", "src/train.py"}), "train");
  EXPECT_EQ(default_name({"/opt/bin/run model"}), "run_model");
  EXPECT_EQ(default_name({"7zip"}), "job_7zip");
  EXPECT_EQ(default_name({}), "job");
}

TEST(JobId, IsTheLastLine) {
  EXPECT_EQ(*read_job_id("57\n"), "57");
  EXPECT_EQ(*read_job_id("57;cluster\n"), "57");
  EXPECT_EQ(*read_job_id("Thank you for your job\n8.polaris-pbs-01.host\n"),
            "8.polaris-pbs-01.host");
  EXPECT_FALSE(read_job_id("").ok());
  EXPECT_FALSE(read_job_id("error\n").ok());
}

TEST(BashWord, IsOneLineWhateverItHolds) {
  EXPECT_EQ(bash_word("plain"), "plain");
  EXPECT_EQ(bash_word(""), "''");
  EXPECT_EQ(bash_word("two words"), "'two words'");
  EXPECT_EQ(bash_word("a\nb'c\\\x01"
                      "2"),
            "$'a\\nb\\'c\\\\\\0012'");
}

}  // namespace
}  // namespace ezpz::submit
