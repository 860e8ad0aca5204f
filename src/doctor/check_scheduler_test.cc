#include <gtest/gtest.h>

#include "doctor/check_job.h"
#include "doctor/job_testing.h"

namespace ezpz::doctor {
namespace {

using job_testing::only;
using job_testing::pbs_job;
using job_testing::says;
using job_testing::slurm_job;

TEST(CheckScheduler, ThatDoesNotAnswerIsUnknownWithItsOwnWords) {
  JobSight sight = slurm_job();
  sight.job.job_state.reset();
  sight.job.why.erase("running_jobs");
  sight.job.trouble = {"scontrol: exit code 1: job script retrieval failed",
                       "squeue: no answer in time"};
  const Finding finding = only(check_scheduler(sight));
  EXPECT_EQ(finding.health, Health::unknown);
  EXPECT_TRUE(says(finding, "squeue: no answer in time")) << finding.why;
}

TEST(CheckScheduler, OfAMachineThatShouldHaveOneIsMissed) {
  JobSight sight;
  sight.machine.title = "Perlmutter (NERSC)";
  sight.machine.scheduler = "slurm";
  sight.machine_known = true;
  EXPECT_EQ(only(check_scheduler(sight)).health, Health::warning);
  sight.machine_known = false;
  EXPECT_EQ(only(check_scheduler(sight)).health, Health::ok);
}

TEST(CheckScheduler, CommandsThatAreNotInPathAreNamed) {
  JobSight sight = slurm_job();
  sight.programs["squeue"] = false;
  const Finding finding = only(check_scheduler(sight));
  EXPECT_EQ(finding.health, Health::warning);
  EXPECT_TRUE(says(finding, "squeue") && !says(finding, "scontrol")) << finding.why;
}

TEST(CheckScheduler, TwoJobsInOneEnvironmentAreOneTooMany) {
  JobSight sight = slurm_job();
  sight.job_variables["PBS_JOBID"] = "9.server";
  EXPECT_EQ(only(check_scheduler(sight)).health, Health::warning);
  sight.job_variables["PBS_JOBID"] = "57.look-alike";
  EXPECT_EQ(only(check_scheduler(sight)).health, Health::ok) << "a look-alike of the same job";
}

TEST(CheckJobState, AnEnvironmentThatOutlivedItsJobIsAnError) {
  JobSight sight = slurm_job();
  sight.job.job_state.reset();
  sight.job.job_is_unknown = true;
  EXPECT_EQ(only(check_job(sight)).health, Health::error);
  sight = slurm_job();
  sight.job.job_state = "COMPLETING";
  sight.job.job_phase = site::JobPhase::ending;
  EXPECT_EQ(only(check_job(sight)).health, Health::error);
}

TEST(CheckJobState, AWordThatIsNotKnownIsUnknown) {
  JobSight sight = slurm_job();
  sight.job.job_state = "MELTING";
  sight.job.job_phase = site::JobPhase::unknown;
  EXPECT_EQ(only(check_job(sight)).health, Health::unknown);
}

TEST(CheckJobHosts, ALostHostIsInTheEnvironmentAlone) {
  JobSight sight = slurm_job();
  sight.job.scheduler_hosts = sight.job.hosts = {"nid1", "nid3", "nid4"};
  const Finding finding = only(check_job_hosts(sight));
  EXPECT_EQ(finding.health, Health::warning);
  EXPECT_TRUE(says(finding, "nid2 left the job")) << finding.why;
}

TEST(CheckJobHosts, SpellingsOfOneNodeAreOneHost) {
  JobSight sight = pbs_job();
  sight.machine.naming.domains = {".hsn.*"};
  sight.machine.naming.interfaces = {"-hsn#"};
  sight.job.environment_hosts = {"nid1-hsn0.hsn.site", "nid2", "nid3", "nid4"};
  EXPECT_EQ(only(check_job_hosts(sight)).health, Health::ok);
}

TEST(CheckJobHosts, WithoutTheSchedulersListNothingIsCompared) {
  JobSight sight = slurm_job();
  sight.job.scheduler_hosts.clear();
  EXPECT_EQ(only(check_job_hosts(sight)).health, Health::unknown);
}

TEST(CheckHeterogeneous, IsAnErrorWhichLaunchWouldRefuse) {
  JobSight sight = slurm_job();
  sight.job.heterogeneous = true;
  sight.job.why["heterogeneous"] = "SLURM_HET_SIZE=2";
  const Finding finding = only(check_heterogeneous(sight));
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "SLURM_HET_SIZE=2"));
  sight.job.heterogeneous = false;
  sight.job.job_state.reset();
  EXPECT_TRUE(check_heterogeneous(sight).empty()) << "ok of what was not seen";
}

}  // namespace
}  // namespace ezpz::doctor
