#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "site/scheduler.h"

namespace ezpz::site {
namespace {

using Hosts = std::vector<std::string>;

HelperResult says(const std::string& text) {
  HelperResult result;
  result.started = true;
  result.exit.code = 0;
  result.out = text;
  return result;
}

HelperResult hangs(const Argv& argv) {
  HelperResult result;
  result.started = true;
  result.timed_out = true;
  result.trouble = shell_join(argv) + ": no answer within 10 s";
  return result;
}

// Answers by the first entry whose words all occur in the question; everything else hangs.
struct Fake {
  std::vector<std::pair<std::string, std::string>> answers;
  std::vector<std::string> asked;

  AskHelper ask() {
    return [this](const Argv& argv, double) {
      asked.push_back(join(argv, " "));
      for (const auto& [question, text] : answers) {
        if (asked.back().find(question) != std::string::npos) return says(text);
      }
      return hangs(argv);
    };
  }
};

ProgramExists programs(const Hosts& names) {
  return [names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
}

const Environment job = {{"SLURM_JOB_ID", "42"},
                         {"SLURM_JOB_NODELIST", "nid[000001-000004]"},
                         {"SLURM_JOB_END_TIME", "1796000000"},
                         {"SLURM_JOB_CPUS_PER_NODE", "8(x3),4"},
                         {"SLURM_CPUS_PER_TASK", "2"},
                         {"SLURM_GPUS_ON_NODE", "4"},
                         {"SLURM_CLUSTER_NAME", "lab"},
                         {"USER", "me"}};

constexpr const char* job_after_loss =
    "JobId=42 JobName=t UserId=me(1) JobState=RUNNING EndTime=2026-11-29T16:10:01 "
    "NodeList=nid[000001,000003-000004] BatchHost=nid000001";

TEST(Discover, AJobsEnvironmentAnswersWithoutAsking) {
  Fake fake;
  const Discovery found = discover(job, fake.ask(), programs({}), Depth::environment, "nid000001");
  EXPECT_TRUE(fake.asked.empty());
  EXPECT_EQ(found.scheduler, SchedulerKind::slurm);
  EXPECT_EQ(found.job_id, "42");
  EXPECT_EQ(found.hosts, (Hosts{"nid000001", "nid000002", "nid000003", "nid000004"}));
  EXPECT_EQ(found.end_time_s, 1796000000.0);
  EXPECT_EQ(found.time_left_s(1795999990.0), 10.0);
  EXPECT_EQ(found.time_left_s(1796000001.0), 0.0);
  EXPECT_EQ(found.cpus_per_node, 4);
  EXPECT_EQ(found.cpus_per_task, 2);
  EXPECT_EQ(found.gpus_per_node, 4);
  EXPECT_EQ(found.cluster, "lab");
  EXPECT_FALSE(found.heterogeneous);
  EXPECT_FALSE(found.no_kill);
  for (const char* field : {"scheduler", "job_id", "hosts", "end_time_s", "cpus_per_node",
                            "gpus_per_node", "cluster", "user"}) {
    EXPECT_TRUE(found.why.count(field)) << field;
  }
}

TEST(Discover, TheSchedulersWordOutranksTheEnvironmentAfterANodeLoss) {
  Fake fake{{{"squeue", "42\n"},
             {"show job", job_after_loss},
             {"batch_script", "#!/bin/sh\n#SBATCH --no-kill\n"}},
            {}};
  const Discovery found = discover(job, fake.ask(), programs({}), Depth::everything, "nid000001");
  EXPECT_EQ(found.hosts, (Hosts{"nid000001", "nid000003", "nid000004"}));
  EXPECT_NE(found.why.at("hosts").find("environment names others"), std::string::npos);
  EXPECT_EQ(found.job_state, "RUNNING");
  EXPECT_EQ(found.end_time_s, slurm::parse_time("2026-11-29T16:10:01"));
  EXPECT_EQ(found.no_kill, true);
  EXPECT_EQ(found.running_jobs, Hosts{"42"});
  EXPECT_TRUE(found.trouble.empty());
}

TEST(Discover, WhereScontrolFailsSqueueAnswersAndThenSacct) {
  for (const std::string program : {"squeue", "sacct"}) {
    const AskHelper ask = [&program](const Argv& argv, double) {
      const std::string question = join(argv, " ");
      if (question.find(program + " ") != std::string::npos &&
          question.find("42") != std::string::npos) {
        return says("RUNNING|2026-11-29T16:10:01|nid[000002-000004]\n");
      }
      HelperResult fails;
      fails.started = true;
      fails.exit.code = 1;
      fails.trouble = argv[0] + ": exit code 1";
      return fails;
    };
    const Discovery found = discover(job, ask, programs({}), Depth::job, "nid000001");
    EXPECT_EQ(found.hosts, (Hosts{"nid000002", "nid000003", "nid000004"})) << program;
    EXPECT_EQ(found.job_state, "RUNNING");
    EXPECT_EQ(found.end_time_s, slurm::parse_time("2026-11-29T16:10:01"));
    EXPECT_EQ(found.why.at("job_state"), program);
    EXPECT_FALSE(found.trouble.empty()) << "that scontrol failed is still said";
  }
}

TEST(Discover, ASchedulerThatHangsCostsAnswersNotTheLaunch) {
  Fake fake;
  const Discovery found = discover(job, fake.ask(), programs({}), Depth::everything, "nid000001");
  EXPECT_EQ(found.hosts.size(), 4U);
  EXPECT_EQ(found.end_time_s, 1796000000.0);
  EXPECT_FALSE(found.job_state);
  EXPECT_EQ(found.trouble.size(), 1U) << "who did not answer once is not asked again";
  for (const std::string& line : found.trouble) {
    EXPECT_NE(line.find("no answer"), std::string::npos);
  }
}

TEST(Discover, HostsThatTheEnvironmentLacksAreAskedFor) {
  Fake fake{{{"show job", job_after_loss}}, {}};
  const Discovery found = discover({{"SLURM_JOBID", "42"}, {"USER", "me"}}, fake.ask(),
                                   programs({}), Depth::environment, "h");
  EXPECT_EQ(found.hosts.size(), 3U);
  EXPECT_EQ(fake.asked.size(), 1U);
}

TEST(Discover, ADamagedNodeListIsTroubleAndThenAsked) {
  Fake fake{{{"show job", job_after_loss}}, {}};
  Environment env = job;
  env["SLURM_JOB_NODELIST"] = "nid[000001-";
  const Discovery found = discover(env, fake.ask(), programs({}), Depth::environment, "h");
  EXPECT_EQ(found.hosts.size(), 3U);
  ASSERT_EQ(found.trouble.size(), 1U);
  EXPECT_NE(found.trouble[0].find("SLURM_JOB_NODELIST"), std::string::npos);
}

TEST(Discover, AShellOnAJobsNodeFindsItsJob) {
  Fake fake{{{"squeue", "41\n42\n"},
             {"-o 41", "JobId=41 JobName=o UserId=me(1) JobState=RUNNING NodeList=nid000009"},
             {"-o 42", job_after_loss},
             {"config", "ClusterName = lab\n"},
             {"batch_script", "#!/bin/sh\n"}},
            {}};
  const Discovery found = discover({{"USER", "me"}}, fake.ask(), programs({"scontrol", "squeue"}),
                                   Depth::everything, "nid000003.site.gov");
  EXPECT_EQ(found.job_id, "42");
  EXPECT_EQ(found.hosts.size(), 3U);
  EXPECT_EQ(found.cluster, "lab");
  EXPECT_EQ(found.running_jobs, (Hosts{"41", "42"}));
}

TEST(Discover, OutsideAnyJobNothingIsAskedForALaunch) {
  Fake fake;
  const Discovery found = discover({{"USER", "me"}}, fake.ask(), programs({"scontrol", "squeue"}),
                                   Depth::environment, "login1");
  EXPECT_EQ(found.scheduler, SchedulerKind::slurm);
  EXPECT_FALSE(found.in_job());
  EXPECT_TRUE(fake.asked.empty());
  EXPECT_FALSE(found.time_left_s(0));
}

TEST(Discover, HeterogeneousJobsAreNoticed) {
  Fake fake;
  for (const char* name : {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"}) {
    Environment env = job;
    env[name] = "2";
    EXPECT_TRUE(discover(env, fake.ask(), programs({}), Depth::environment, "h").heterogeneous);
  }
  Environment env = job;
  env["SLURM_JOB_ID"] = "42+1";
  EXPECT_TRUE(discover(env, fake.ask(), programs({}), Depth::environment, "h").heterogeneous);
}

TEST(Discover, PbsIsRecognisedAndItsNodeFileRead) {
  const std::string path = ::testing::TempDir() + "ezpz_pbs_nodefile";
  std::ofstream(path) << "x1.hsn.cm.site\nx1.hsn.cm.site\nx2.hsn.cm.site\nx2.hsn.cm.site\n";
  Fake fake;
  const Discovery found =
      discover({{"PBS_JOBID", "123.aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov"},
                {"PBS_NODEFILE", path}},
               fake.ask(), programs({}), Depth::everything, "x1");
  EXPECT_EQ(found.scheduler, SchedulerKind::pbs);
  EXPECT_EQ(found.hosts, (Hosts{"x1.hsn.cm.site", "x2.hsn.cm.site"}));
  EXPECT_EQ(found.cluster, "aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov");
  std::filesystem::remove(path);
  const Discovery gone = discover({{"PBS_JOBID", "1.s"}, {"PBS_NODEFILE", path}}, fake.ask(),
                                  programs({}), Depth::environment, "x1");
  EXPECT_EQ(gone.trouble.size(), 1U);
}

TEST(Discover, WithoutASchedulerThatIsTheAnswer) {
  Fake fake;
  const Discovery found = discover({}, fake.ask(), programs({}), Depth::everything, "h");
  EXPECT_EQ(found.scheduler, SchedulerKind::none);
  EXPECT_TRUE(fake.asked.empty());
  EXPECT_FALSE(found.user.empty());
  EXPECT_EQ(scheduler(SchedulerKind::none).job_query, nullptr);
  EXPECT_NE(scheduler(SchedulerKind::slurm).nodes_query, nullptr);
}

TEST(OwnFqdn, ComesFromABoundedLookup) {
  Fake fake{{{"getent hosts nid1", "10.0.0.1  nid1-hsn0.site.gov nid1.site.gov nid1\n"}}, {}};
  std::string trouble;
  EXPECT_EQ(own_fqdn("nid1", fake.ask(), &trouble), "nid1.site.gov");
  EXPECT_TRUE(trouble.empty());
  EXPECT_EQ(own_fqdn("full.name", fake.ask(), &trouble), "full.name");
  EXPECT_EQ(own_fqdn("lost", fake.ask(), &trouble), "");
  EXPECT_FALSE(trouble.empty());
}

TEST(OwnFqdn, LocalhostIsNoName) {
  Fake fake{{{"getent", "127.0.1.1 localhost.localdomain vm\n"}}, {}};
  EXPECT_EQ(own_fqdn("vm", fake.ask(), nullptr), "");
}

}  // namespace
}  // namespace ezpz::site
