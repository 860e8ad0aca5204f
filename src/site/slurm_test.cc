#include "site/slurm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "site/scheduler.h"

namespace ezpz::site::slurm {
namespace {

using Hosts = std::vector<std::string>;

// What scontrol 22.05.8 printed, here and below, after a node of four was lost.
constexpr const char* job_line =
    "JobId=42 JobName=train UserId=me(1000) GroupId=me(1000) MCS_label=N/A Priority=4294901759 "
    "Nice=0 Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 "
    "Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:42 TimeLimit=00:30:00 TimeMin=N/A "
    "SubmitTime=2026-11-29T16:34:06 EligibleTime=2026-11-29T16:34:06 "
    "AccrueTime=2026-11-29T16:34:06 StartTime=2026-11-29T16:34:06 EndTime=2026-11-29T17:04:06 "
    "Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-29T16:34:06 "
    "Scheduler=Backfill Partition=all AllocNode:Sid=ezpzctl:3250 ReqNodeList=(null) "
    "ExcNodeList=(null) NodeList=nid[000001,000003-000004] BatchHost=nid000001 NumNodes=3 "
    "NumCPUs=24 NumTasks=16 CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=32,mem=16000M,node=4 "
    "Features=(null) DelayBoot=00:00:00 Licenses=(null) Network=(null) Command=/home/me/job.sh "
    "WorkDir=/home/me StdErr=/home/me/out.txt Power= TresPerNode=gres:gpu:4 \n";

TEST(SlurmJob, IsReadFromOneLineOrMany) {
  for (const std::string& text :
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
    EXPECT_EQ(job->end_time_s, parse_time("2026-11-29T17:04:06"));
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
      "NodeName=nid000001 Arch=x86_64 CoresPerSocket=1  CPUAlloc=8 CPUEfctv=8 CPUTot=8 "
      "NodeAddr=10.221.222.1 NodeHostName=nid000001 Version=22.05.8 RealMemory=4000 Sockets=8 "
      "Boards=1 State=ALLOCATED ThreadsPerCore=1 TmpDisk=0 Partitions=all  "
      "ExtSensorsTemp=n/s\n"
      "NodeName=nid000002 Arch=x86_64 State=DOWN+NOT_RESPONDING ThreadsPerCore=1 "
      "Reason=State=IDLE [slurm@2026-11-29T16:35:00]\n"
      "Node foo not found\n");
  EXPECT_EQ(states, (std::map<std::string, std::string>{{"nid000001", "ALLOCATED"},
                                                        {"nid000002", "DOWN+NOT_RESPONDING"}}));
}

TEST(SlurmNodes, DeadIsNotUsableAndDrainingIsItsOwnQuestion) {
  for (const char* state :
       {"IDLE", "ALLOCATED", "MIXED", "idle", "MIXED+DRAIN", "IDLE+DRAIN", "DRAINING",
        "ALLOCATED+COMPLETING", "IDLE+PLANNED", "maint$", "", "SOMETHING_NEW"}) {
    EXPECT_TRUE(is_usable(state)) << state;
  }
  for (const char* state : {"DOWN", "DOWN*", "down", "IDLE*", "DOWN+NOT_RESPONDING", "IDLE+FAIL",
                            "IDLE+NOT_RESPONDING", "FAIL", "FAILING", "DOWN+DRAIN", "IDLE~",
                            "IDLE+POWERED_DOWN", "ERROR", "ALLOCATED*+DRAIN", "IDLE#"}) {
    EXPECT_FALSE(is_usable(state)) << state;
  }
  EXPECT_TRUE(is_draining("IDLE+DRAIN"));
  EXPECT_TRUE(is_draining("drained"));
  EXPECT_FALSE(is_draining("ALLOCATED"));
}

TEST(SlurmSteps, OnlyNumberedStepsCount) {
  const auto steps = read_steps(
      "StepId=42.extern UserId=0 State=RUNNING NodeList=nid[000001-000004]\n"
      "StepId=42.batch UserId=0 StartTime=2026-11-29T16:34:45 TimeLimit=UNLIMITED State=RUNNING "
      "Partition=all NodeList=nid000001 Nodes=1 CPUs=0 Tasks=1 Name=batch\n"
      "StepId=42.3 UserId=0 StartTime=2026-11-29T16:34:45 TimeLimit=UNLIMITED State=RUNNING "
      "Partition=all NodeList=nid[000001-000002] Nodes=2 CPUs=8 Tasks=4 Name=tool "
      "Network=(null) TRES=cpu=8,mem=8000M,node=2 ResvPorts=(null) CPUFreqReq=Default Dist=Block "
      "SrunHost:Pid=nid000001:27 TresPerStep=cpu:8 TresPerNode=gres:gpu:2 TresPerTask=cpu:2\n");
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
