#include "site/slurm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "site/scheduler.h"

namespace ezpz::site::slurm {
namespace {

using Hosts = std::vector<std::string>;

constexpr const char* job_line =
    "JobId=42 JobName=train UserId=me(1000) GroupId=me(1000) MCS_label=N/A Priority=4294901757 "
    "Nice=0 Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 "
    "Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:01:02 TimeLimit=00:10:00 "
    "TimeMin=N/A SubmitTime=2026-11-29T16:00:00 StartTime=2026-11-29T16:00:01 "
    "EndTime=2026-11-29T16:10:01 Deadline=N/A Partition=debug ReqNodeList=(null) "
    "ExcNodeList=(null) NodeList=nid[000001,000003-000004] BatchHost=nid000001 NumNodes=3 "
    "Command=/home/me/job.sh WorkDir=/home/me\n";

TEST(SlurmJob, IsReadFromOneLineOrMany) {
  for (std::string text :
       {std::string(job_line), [] {
          std::string lines = job_line;
          for (const char* key : {" UserId=", " JobState=", " NodeList=", " EndTime="}) {
            lines.insert(lines.find(key), "\n  ");
          }
          return lines;
        }()}) {
    const Result<Job> job = read_job(text);
    ASSERT_TRUE(job.ok()) << job.error().one_line();
    EXPECT_EQ(job->id, "42");
    EXPECT_EQ(job->state, "RUNNING");
    EXPECT_EQ(job->user, "me");
    EXPECT_EQ(job->hosts, (Hosts{"nid000001", "nid000003", "nid000004"}));
    EXPECT_EQ(job->end_time_s, parse_time("2026-11-29T16:10:01"));
    EXPECT_FALSE(job->heterogeneous);
  }
}

TEST(SlurmJob, AJobNameCannotForgeAState) {
  std::string text = job_line;
  text.replace(text.find("JobName=train"), 13,
               "JobName=x JobState=FAILED NodeList=evil UserId=root(0) EndTime=Unknown y");
  const Result<Job> job = read_job(text);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state, "RUNNING");
  EXPECT_EQ(job->hosts.front(), "nid000001");
  EXPECT_TRUE(job->end_time_s.has_value());
}

TEST(SlurmJob, WhatIsNotThereStaysUnknown) {
  const Result<Job> job = read_job(
      "JobId=7 HetJobId=7 HetJobOffset=0 JobName=a UserId=u(1) JobState=PENDING "
      "EndTime=Unknown NodeList=(null)");
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(job->heterogeneous);
  EXPECT_TRUE(job->hosts.empty());
  EXPECT_FALSE(job->end_time_s);
  EXPECT_FALSE(read_job("").ok());
  EXPECT_FALSE(read_job("slurm_load_jobs error: Invalid job id specified\n").ok());
  EXPECT_FALSE(read_job("JobId=7").ok());
}

TEST(SlurmJob, TimeIsAskedForInTheFormThatIsRead) {
  EXPECT_EQ(job_query("7"),
            (Argv{"env", "SLURM_TIME_FORMAT=standard", "scontrol", "show", "job", "-o", "7"}));
}

TEST(SlurmJob, NoKillIsReadFromTheBatchScript) {
  EXPECT_EQ(read_no_kill("#!/bin/bash\n#SBATCH -N4 --no-kill\nsrun x\n"), true);
  EXPECT_EQ(read_no_kill("#!/bin/bash\n# text\n\n#SBATCH -k\n"), true);
  EXPECT_EQ(read_no_kill("#!/bin/bash\n#SBATCH --no-kill=off\n"), false);
  EXPECT_EQ(read_no_kill("#!/bin/bash\n#SBATCH -N4 # --no-kill\n"), std::nullopt);
  EXPECT_EQ(read_no_kill("#!/bin/bash\nsrun x\n#SBATCH --no-kill\n"), std::nullopt);
}

TEST(SlurmJobs, IdsAreListedOnce) {
  EXPECT_EQ(read_my_jobs("57540534\n57540535\n57540535\nslurm_load: x\n"),
            (Hosts{"57540534", "57540535"}));
  EXPECT_EQ(my_jobs_query("me"), (Argv{"squeue", "-h", "-u", "me", "-t", "RUNNING", "-o", "%A"}));
}

TEST(SlurmNodes, StatesAreReadByName) {
  EXPECT_EQ(nodes_query({"nid1", "nid2"}), (Argv{"scontrol", "show", "node", "-o", "nid[1-2]"}));
  const auto states = read_nodes(
      "NodeName=nid1 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 State=IDLE+DRAIN ThreadsPerCore=1 "
      "Reason=State=DOWN [root@2026-11-29T16:00:00]\n"
      "NodeName=nid2 NodeAddr=10.0.0.2 State=DOWN* ThreadsPerCore=1\n"
      "Node nid9 not found\n");
  EXPECT_EQ(states,
            (std::map<std::string, std::string>{{"nid1", "IDLE+DRAIN"}, {"nid2", "DOWN*"}}));
}

TEST(SlurmNodes, DeadIsNotUsableAndDrainingIsItsOwnQuestion) {
  for (const char* state :
       {"IDLE", "ALLOCATED", "MIXED", "idle", "MIXED+DRAIN", "IDLE+DRAIN", "DRAINING",
        "ALLOCATED+COMPLETING", "IDLE+PLANNED", "maint$", "", "SOMETHING_NEW"}) {
    EXPECT_TRUE(is_usable(state)) << state;
  }
  for (const char* state :
       {"DOWN", "DOWN*", "down", "IDLE*", "IDLE+NOT_RESPONDING", "FAIL", "FAILING", "DOWN+DRAIN",
        "IDLE~", "IDLE+POWERED_DOWN", "ERROR", "ALLOCATED*+DRAIN", "IDLE#"}) {
    EXPECT_FALSE(is_usable(state)) << state;
  }
  EXPECT_TRUE(is_draining("IDLE+DRAIN"));
  EXPECT_TRUE(is_draining("drained"));
  EXPECT_FALSE(is_draining("ALLOCATED"));
}

TEST(SlurmSteps, OnlyNumberedStepsCount) {
  const auto steps = read_steps(
      "StepId=42.extern UserId=0 State=RUNNING NodeList=nid[000001-000004]\n"
      "StepId=42.batch UserId=0 State=RUNNING NodeList=nid000001\n"
      "StepId=42.3 UserId=0 StartTime=2026-11-29T16:00:00 TimeLimit=UNLIMITED State=RUNNING "
      "Partition=debug NodeList=nid[000001-000002] Nodes=2\n");
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].id, "42.3");
  EXPECT_EQ(steps[0].state, "RUNNING");
  EXPECT_EQ(steps[0].hosts, (Hosts{"nid000001", "nid000002"}));
}

TEST(SlurmConfig, NamesTheCluster) {
  EXPECT_EQ(read_cluster("Configuration data as of x\nClusterName             = lab\nCommX = y\n"),
            "lab");
  EXPECT_EQ(read_cluster(""), std::nullopt);
}

TEST(SlurmCounts, TheRepeatGrammarIsExpanded) {
  EXPECT_EQ(expand_counts("8(x3),4"), (std::vector<int>{8, 8, 8, 4}));
  EXPECT_EQ(expand_counts("128"), (std::vector<int>{128}));
  EXPECT_EQ(expand_counts("4(x2),2(x1)\n"), (std::vector<int>{4, 4, 2}));
  for (const char* bad :
       {"", "x", "4(", "4(x", "4(x)", "4(x0)", "4(2)", "4,,4", "-4", "4(x99999999)"}) {
    EXPECT_FALSE(expand_counts(bad)) << bad;
  }
}

TEST(SlurmTime, IsLocalAndKnowsDaylightSaving) {
  const char* before = std::getenv("TZ");
  const std::string saved = before != nullptr ? before : "";
  setenv("TZ", "PST8PDT,M3.2.0,M11.1.0", 1);
  tzset();
  EXPECT_EQ(parse_time("2026-01-15T00:00:00"), 1768464000.0);  // UTC-8
  EXPECT_EQ(parse_time("2026-07-15T00:00:00"), 1784098800.0);  // UTC-7
  if (before != nullptr) {
    setenv("TZ", saved.c_str(), 1);
  } else {
    unsetenv("TZ");
  }
  tzset();
  for (const char* unknown : {"Unknown", "N/A", "None", "", "2026-11-29", "2026-11-29T16:00:00x"}) {
    EXPECT_FALSE(parse_time(unknown)) << unknown;
  }
}

TEST(SlurmGpus, AreCountedInEveryForm) {
  EXPECT_EQ(gpus_on_node({{"SLURM_GPUS_ON_NODE", "4"}}), 4);
  EXPECT_EQ(gpus_on_node({{"SLURM_JOB_GPUS", "0,1,2,3"}}), 4);
  EXPECT_EQ(gpus_on_node({{"SLURM_JOB_GPUS", "0-2,5"}}), 4);
  EXPECT_EQ(gpus_on_node({{"SLURM_GPUS_PER_NODE", "a100:4"}}), 4);
  EXPECT_EQ(gpus_on_node({{"SLURM_GPUS_PER_NODE", "gpu:a100:3,gpu:h100:1"}}), 4);
  EXPECT_EQ(gpus_on_node({{"SLURM_GPUS_ON_NODE", ""}, {"SLURM_GPUS_PER_NODE", "2"}}), 2);
  EXPECT_EQ(gpus_on_node({{"SLURM_GPUS_ON_NODE", "nonsense"}}), 0);
  EXPECT_EQ(gpus_on_node({}), 0);
}

}  // namespace
}  // namespace ezpz::site::slurm
