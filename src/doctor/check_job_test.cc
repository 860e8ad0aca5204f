// The rules that hold for every check of the job.
#include "doctor/check_job.h"

#include <gtest/gtest.h>

#include "doctor/job_testing.h"

namespace ezpz::doctor {
namespace {

using job_testing::pbs_job;
using job_testing::slurm_job;

TEST(CheckJob, NothingIsWrongWithAHealthyJob) {
  for (const JobSight& sight : {slurm_job(), pbs_job()}) {
    for (const Finding& finding : check_everything_of_the_job(sight)) {
      EXPECT_EQ(finding.health, Health::ok) << finding.check << ": " << finding.why;
      EXPECT_FALSE(finding.why.empty()) << finding.check;
    }
  }
}

TEST(CheckJob, WhatWasNotSeenIsNeverOk) {
  JobSight blind;
  blind.job.scheduler = site::SchedulerKind::slurm;
  blind.job.job_id = "57";
  blind.job.why["scheduler"] = "SLURM_JOB_ID is set";
  blind.launch.launcher = "srun";
  blind.launch.pool = make_nodes({"n1", "n2"}, {});
  blind.log_dir.trouble = "no answer within 6 s";
  blind.log_dir.path = "/logs";
  for (const Finding& finding : check_everything_of_the_job(blind)) {
    if (finding.check == "launcher" || finding.check == "binary") continue;  // these were seen
    EXPECT_EQ(finding.health, Health::unknown) << finding.check << ": " << finding.why;
  }
}

TEST(CheckJob, EveryTroubleSaysWhatToDo) {
  JobSight sick = pbs_job();
  sick.job.unfit_hosts = {{"nid1", "offline"}, {"nid2", "down"}, {"nid4", "down"}};
  sick.hostname = "login1";
  sick.job.no_kill = false;
  sick.job.end_time_s = sick.now_s + 60;
  sick.job.heterogeneous = true;
  sick.job.scheduler_hosts = {"nid1"};
  sick.programs["qstat"] = false;
  sick.launch.plan_error = Error{"no", "way", ""};
  sick.launch.launcher_error = Error{"no mpiexec", "", ""};
  sick.log_dir.writable = false;
  sick.log_dir.write_error = "Permission denied";
  size_t troubles = 0;
  for (const Finding& finding : check_everything_of_the_job(sick)) {
    if (finding.health == Health::ok) continue;
    ++troubles;
    EXPECT_FALSE(finding.remedy.empty()) << finding.check;
    EXPECT_EQ(finding.why.find('\n'), std::string::npos) << finding.check;
  }
  EXPECT_GE(troubles, 9U);
}

TEST(CheckJob, OnALaptopNothingIsSaidOfJobs) {
  JobSight plain;
  plain.launch.launcher = "local";
  plain.launch.plan = "1 rank on 1 host";
  plain.log_dir.path = plain.log_dir.existing = "/home/me/logs";
  plain.log_dir.writable = true;
  plain.log_dir.free_bytes = plain.log_dir.total_bytes = 1e12;
  std::vector<std::string> checks;
  for (const Finding& finding : check_everything_of_the_job(plain)) {
    EXPECT_EQ(finding.health, Health::ok) << finding.check << ": " << finding.why;
    checks.push_back(finding.check);
  }
  EXPECT_EQ(checks, (std::vector<std::string>{"scheduler", "launcher", "launch-plan", "log-dir"}));
}

}  // namespace
}  // namespace ezpz::doctor
