#include <gtest/gtest.h>

#include "doctor/check_job.h"
#include "doctor/job_testing.h"

namespace ezpz::doctor {
namespace {

using job_testing::only;
using job_testing::pbs_job;
using job_testing::says;
using job_testing::slurm_job;

TEST(CheckLauncher, ThatIsNotThereIsAnErrorWithItsHint) {
  JobSight sight = pbs_job();
  sight.launch.launcher_error =
      Error{"no mpiexec of pals in PATH", "/conda/bin/mpiexec is MPICH's Hydra", "load the module"};
  const Finding finding = only(check_launcher(sight));
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "/conda/bin/mpiexec is MPICH's Hydra"));
  EXPECT_EQ(finding.remedy, "load the module");
}

TEST(CheckLauncher, AnotherThanTheMachinesIsAWarning) {
  JobSight sight = pbs_job();
  sight.machine_known = true;
  sight.machine.title = "Sunspot";
  sight.machine.launcher = "pals";
  EXPECT_EQ(only(check_launcher(sight)).health, Health::ok);
  sight.launch.launcher = "hydra";
  EXPECT_EQ(only(check_launcher(sight)).health, Health::warning);
}

TEST(CheckBinary, WhereNodesMayNotSeeItIsAWarning) {
  JobSight sight = slurm_job();
  sight.binary = {"/tmp/ezpz", "xfs", false};
  EXPECT_EQ(only(check_binary(sight)).health, Health::warning);
  sight.binary = {"/proj/ezpz", "tmpfs", true};
  EXPECT_EQ(only(check_binary(sight)).health, Health::warning);
  sight.binary = {"/tmpfoo/ezpz", "xfs", false};
  EXPECT_EQ(only(check_binary(sight)).health, Health::ok) << "not below /tmp";
  sight.binary = {"/tmp/ezpz", "xfs", false};
  sight.nodes_were_asked = true;
  EXPECT_TRUE(check_binary(sight).empty()) << "the nodes themselves have said";
}

TEST(CheckLaunchPlan, SaysWhatWouldBeRefused) {
  JobSight sight = slurm_job();
  sight.launch.plan.clear();
  sight.launch.plan_error = Error{"9 hosts are more than there are", "--nhosts", ""};
  const Finding finding = only(check_launch_plan(sight));
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "9 hosts are more than there are: --nhosts"));
}

constexpr double kMiB = 1024.0 * 1024;

TEST(CheckLogDir, WithoutRoomIsAnErrorAndWithLittleAWarning) {
  JobSight sight = slurm_job();
  sight.log_dir.free_bytes = 500 * kMiB;
  EXPECT_EQ(only(check_log_dir(sight)).health, Health::warning);
  sight.log_dir.free_bytes = 4096;
  EXPECT_EQ(only(check_log_dir(sight)).health, Health::error);
  sight = slurm_job();
  sight.log_dir.total_files = 1000;
  sight.log_dir.free_files = 3;
  EXPECT_EQ(only(check_log_dir(sight)).health, Health::error) << "no inodes";
}

TEST(CheckLogDir, ThatCannotBeWrittenIsAnErrorWithTheSystemsWord) {
  JobSight sight = slurm_job();
  sight.log_dir.writable = false;
  sight.log_dir.write_error = "Disk quota exceeded";
  EXPECT_TRUE(says(only(check_log_dir(sight)), "Disk quota exceeded"));
  sight.log_dir.is_folder = false;
  EXPECT_EQ(only(check_log_dir(sight)).health, Health::error);
}

TEST(CheckLogDir, InMemoryIsAWarningForAJobOfMany) {
  JobSight sight = slurm_job();
  sight.log_dir.in_memory = true;
  EXPECT_EQ(only(check_log_dir(sight)).health, Health::warning);
  sight.launch.pool.resize(1);
  EXPECT_EQ(only(check_log_dir(sight)).health, Health::ok);
}

TEST(CheckLogDir, ThatHangsIsUnknown) {
  JobSight sight = slurm_job();
  sight.log_dir.trouble = "no answer within 6 s";
  EXPECT_EQ(only(check_log_dir(sight)).health, Health::unknown);
}

JobSight on_lustre(std::vector<double> used_of_100, LustreStripes stripes) {
  JobSight sight = slurm_job();
  sight.log_dir.lustre.emplace();
  for (size_t i = 0; i < used_of_100.size(); ++i) {
    sight.log_dir.lustre->targets.push_back({"OST000" + std::to_string(i), static_cast<int>(i),
                                             true, true, 100e9, (100 - used_of_100[i]) * 1e9});
  }
  sight.log_dir.lustre->stripes = std::move(stripes);
  return sight;
}

TEST(CheckLustre, OneFullTargetOfFourIsSeenThoughTheWholeIsHardlyUsed) {
  const Finding finding = only(check_lustre(on_lustre({3, 2, 100, 4}, {-1, -1, ""})));
  EXPECT_EQ(finding.health, Health::error);
  EXPECT_TRUE(says(finding, "OST0002 (1 of 4)") && says(finding, "27 % used")) << finding.why;
  EXPECT_FALSE(finding.reference.empty());
}

TEST(CheckLustre, AFullTargetThatNewFilesAvoidIsAWarning) {
  EXPECT_EQ(only(check_lustre(on_lustre({3, 100}, {1, -1, ""}))).health, Health::warning);
  EXPECT_EQ(only(check_lustre(on_lustre({3, 100}, {1, 0, ""}))).health, Health::warning);
  EXPECT_EQ(only(check_lustre(on_lustre({3, 100}, {1, 1, ""}))).health, Health::error);
  JobSight unknown_layout = on_lustre({3, 100}, {});
  unknown_layout.log_dir.lustre->stripes.reset();
  EXPECT_EQ(only(check_lustre(unknown_layout)).health, Health::error);
}

TEST(CheckLustre, NearlyFullAndSilentTargetsAreWarnings) {
  EXPECT_EQ(only(check_lustre(on_lustre({3, 95}, {1, -1, ""}))).health, Health::warning);
  EXPECT_EQ(only(check_lustre(on_lustre({3, 89}, {1, -1, ""}))).health, Health::ok);
  JobSight silent = on_lustre({3, 4}, {1, -1, ""});
  silent.log_dir.lustre->targets[1].active = false;
  EXPECT_TRUE(says(only(check_lustre(silent)), "OST0001"));
}

TEST(CheckLustre, ThatCouldNotBeAskedIsUnknownAndNoLustreIsNothing) {
  JobSight sight = slurm_job();
  EXPECT_TRUE(check_lustre(sight).empty());
  sight.log_dir.lustre_trouble = "lfs: no answer in time";
  EXPECT_EQ(only(check_lustre(sight)).health, Health::unknown);
  sight.log_dir.lustre = LustreSight{};
  EXPECT_EQ(only(check_lustre(sight)).health, Health::unknown) << "no target at all";
}

}  // namespace
}  // namespace ezpz::doctor
