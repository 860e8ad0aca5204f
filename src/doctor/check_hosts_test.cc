#include <gtest/gtest.h>

#include "doctor/check_job.h"
#include "doctor/job_testing.h"

namespace ezpz::doctor {
namespace {

using job_testing::only;
using job_testing::pbs_job;
using job_testing::says;
using job_testing::slurm_job;

HostfileSight hostfile(const std::vector<std::string>& hosts) {
  HostfileSight file;
  file.path = "hosts.txt";
  file.hosts = make_nodes(hosts, {});
  return file;
}

TEST(CheckHostfile, OfTheJobsHostsIsOk) {
  JobSight sight = slurm_job();
  sight.hostfile = hostfile({"nid2", "nid1"});
  EXPECT_EQ(only(check_hostfile(sight)).health, Health::ok);
}

TEST(CheckHostfile, WithAForeignHostIsAnErrorThatNamesIt) {
  JobSight sight = slurm_job();
  sight.hostfile = hostfile({"nid1", "nid9"});
  const Finding finding = only(check_hostfile(sight));
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "nid9") && !says(finding, "nid1 ")) << finding.why;
}

TEST(CheckHostfile, OfAJobWithoutKnownHostsIsUnknown) {
  JobSight sight = slurm_job();
  sight.hostfile = hostfile({"nid1"});
  sight.job.hosts.clear();
  EXPECT_EQ(only(check_hostfile(sight)).health, Health::unknown);
}

TEST(CheckHostfile, OutsideAJobIsTakenAsItIs) {
  JobSight sight;
  sight.hostfile = hostfile({"a", "b"});
  EXPECT_EQ(only(check_hostfile(sight)).health, Health::ok);
  sight.hostfile->duplicates = {"a"};
  EXPECT_EQ(only(check_hostfile(sight)).health, Health::warning);
  sight.hostfile->error = Error{"hostfile is empty", "hosts.txt", "list one host per line"};
  EXPECT_EQ(only(check_hostfile(sight)).health, Health::error);
}

TEST(CheckHostfile, PbsNodeFileThatIsGoneIsSaid) {
  JobSight sight = pbs_job();
  EXPECT_TRUE(check_hostfile(sight).empty());
  sight.job.environment_hosts.clear();
  EXPECT_EQ(only(check_hostfile(sight)).health, Health::warning);
}

TEST(CheckNodes, ADownHostIsAnErrorWhereRanksWouldRun) {
  JobSight sight = slurm_job();
  sight.job.unfit_hosts = {{"nid2", "DOWN+NOT_RESPONDING"}};
  const Finding finding = only(check_nodes(sight));
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "nid2 (DOWN+NOT_RESPONDING)")) << finding.why;
  EXPECT_NE(finding.remedy.find("--exclude nid2"), std::string::npos);
}

TEST(CheckNodes, ADownSpareIsTheSparesMatter) {
  JobSight sight = slurm_job();
  sight.job.unfit_hosts = {{"nid4", "DOWN"}};
  EXPECT_EQ(only(check_nodes(sight)).health, Health::ok);
  const Finding finding = only(check_spares(sight));
  EXPECT_EQ(finding.health, Health::warning);
  EXPECT_TRUE(says(finding, "1 of 1 spare")) << finding.why;
}

TEST(CheckNodes, AHostThatIsLeftOutBlamesNobody) {
  JobSight sight = slurm_job();
  sight.job.unfit_hosts = {{"nid2", "DOWN"}};
  sight.launch.pool = make_nodes({"nid1", "nid3", "nid4"}, {});
  EXPECT_EQ(only(check_nodes(sight)).health, Health::ok);
}

TEST(CheckNodes, ADrainingHostRunsOnAndIsAWarning) {
  JobSight sight = slurm_job();
  sight.job.unfit_hosts = {{"nid1", "MIXED+DRAIN"}};
  EXPECT_EQ(only(check_nodes(sight)).health, Health::warning);
}

TEST(CheckNodes, StatesThatWereNotToldAreUnknown) {
  JobSight sight = slurm_job();
  sight.job.states_known = 0;
  EXPECT_EQ(only(check_nodes(sight)).health, Health::unknown);
  EXPECT_EQ(only(check_spares(sight)).health, Health::unknown);
  sight.job.states_known = 3;
  EXPECT_TRUE(says(only(check_nodes(sight)), "3 of 4 hosts"));
  EXPECT_EQ(only(check_nodes(sight)).health, Health::unknown);
}

TEST(CheckNodes, APbsServerThatCallsTheAskingHostDownIsNotBelieved) {
  JobSight sight = pbs_job();
  sight.job.unfit_hosts = {{"nid1", "state-unknown,down"}, {"nid2", "state-unknown,down"}};
  EXPECT_EQ(only(check_nodes(sight)).health, Health::unknown);
  sight.hostname = "login1";
  EXPECT_EQ(only(check_nodes(sight)).health, Health::error)
      << "asked from elsewhere it is believed";
}

TEST(CheckSpares, NoneIsAWarningAndUnsaidIsUnknown) {
  JobSight sight = slurm_job();
  sight.launch.active = 4;
  EXPECT_EQ(only(check_spares(sight)).health, Health::warning);
  sight.launch.active.reset();
  EXPECT_EQ(only(check_spares(sight)).health, Health::unknown);
}

TEST(CheckSpares, AreNamed) {
  const Finding finding = only(check_spares(slurm_job()));
  EXPECT_EQ(finding.health, Health::ok);
  EXPECT_TRUE(says(finding, "1 spare beside 3 active hosts: nid4")) << finding.why;
}

}  // namespace
}  // namespace ezpz::doctor
