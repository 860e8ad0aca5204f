#include <gtest/gtest.h>

#include "doctor/check_job.h"
#include "doctor/job_testing.h"

namespace ezpz::doctor {
namespace {

using job_testing::only;
using job_testing::pbs_job;
using job_testing::slurm_job;

TEST(CheckNoKill, AJobThatDiesWithANodeIsAWarning) {
  for (JobSight sight : {slurm_job(), pbs_job()}) {
    EXPECT_EQ(only(check_no_kill(sight)).health, Health::ok);
    sight.job.no_kill = false;
    EXPECT_EQ(only(check_no_kill(sight)).health, Health::warning);
    sight.job.no_kill.reset();
    EXPECT_EQ(only(check_no_kill(sight)).health, Health::unknown);
  }
}

TEST(CheckNoKill, AScriptThatDoesNotAskForItIsAWarning) {
  JobSight sight = slurm_job();
  sight.job.no_kill.reset();
  sight.batch_script = "#!/bin/bash\n#SBATCH -N4\nezpz launch\n";
  EXPECT_EQ(only(check_no_kill(sight)).health, Health::warning);
}

TEST(CheckNoKill, OneHostHasNothingToOutlive) {
  JobSight sight = slurm_job();
  sight.job.no_kill = false;
  sight.job.hosts = {"nid1"};
  EXPECT_EQ(only(check_no_kill(sight)).health, Health::ok);
}

TEST(CheckTimeLeft, LittleIsAWarningAndUnknownIsUnknown) {
  JobSight sight = slurm_job();
  EXPECT_EQ(only(check_time_left(sight)).health, Health::ok);
  sight.job.end_time_s = sight.now_s + 899;
  EXPECT_EQ(only(check_time_left(sight)).health, Health::warning);
  sight.job.end_time_s.reset();
  EXPECT_EQ(only(check_time_left(sight)).health, Health::unknown);
}

Finding end_signal(const std::string& script) {
  JobSight sight = slurm_job();
  sight.batch_script = script;
  return only(check_end_signal(sight));
}

TEST(CheckEndSignal, ToTheBatchShellAloneIsAWarning) {
  EXPECT_EQ(end_signal("#!/bin/bash\n#SBATCH --signal=B:USR1@120\nezpz launch -- x\n").health,
            Health::warning);
  EXPECT_EQ(end_signal("#!/bin/bash\n#SBATCH --signal B:USR1@120\nezpz launch -- x\n").health,
            Health::warning);
  EXPECT_EQ(end_signal("#!/bin/bash\n#SBATCH --signal=RB:TERM@60\nsrun x\n").health,
            Health::warning);
}

TEST(CheckEndSignal, ThatIsPassedOnOrForTheStepsIsOk) {
  for (const char* script :
       {"#!/bin/bash\n#SBATCH --signal=B:USR1@120\nexec ezpz launch -- x\n",
        "#!/bin/bash\n#SBATCH --signal=B:USR1@120\ntrap 'kill $p' USR1\nx & p=$!\n",
        "#!/bin/bash\n#SBATCH --signal=USR1@120\nezpz launch -- x\n",
        "#!/bin/bash\nezpz launch -- x\n#SBATCH --signal=B:USR1@120\n"}) {
    EXPECT_EQ(end_signal(script).health, Health::ok) << script;
  }
}

TEST(CheckEndSignal, WithoutAScriptNothingIsSaid) {
  EXPECT_TRUE(check_end_signal(slurm_job()).empty());
}

}  // namespace
}  // namespace ezpz::doctor
