#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "site/scheduler.h"

namespace ezpz::site {
namespace {

using Hosts = std::vector<std::string>;
using States = std::map<std::string, std::string>;

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
             {"show node",
              "NodeName=nid000001 State=ALLOCATED\nNodeName=nid000003 State=MIXED+DRAIN\n"
              "NodeName=nid000004 State=ALLOCATED\n"},
             {"batch_script", "#!/bin/sh\n#SBATCH --no-kill\n"}},
            {}};
  const Discovery found = discover(job, fake.ask(), programs({}), Depth::everything, "nid000001");
  EXPECT_EQ(found.hosts, (Hosts{"nid000001", "nid000003", "nid000004"}));
  EXPECT_NE(found.why.at("hosts").find("environment names others"), std::string::npos);
  EXPECT_EQ(found.job_state, "RUNNING");
  EXPECT_EQ(found.end_time_s, slurm::parse_time("2026-11-29T16:10:01"));
  EXPECT_EQ(found.no_kill, true);
  EXPECT_EQ(found.running_jobs, Hosts{"42"});
  EXPECT_EQ(found.unfit_hosts, (States{{"nid000003", "MIXED+DRAIN"}}));
  EXPECT_TRUE(found.trouble.empty());
}

TEST(Discover, WhatTheEnvironmentAndTheSchedulerTellOfTheHostsIsKeptApart) {
  Fake fake{{{"show job", job_after_loss}}, {}};
  const Discovery found = discover(job, fake.ask(), programs({}), Depth::job, "nid000001");
  EXPECT_EQ(found.environment_hosts.size(), 4U);
  EXPECT_EQ(found.scheduler_hosts, (Hosts{"nid000001", "nid000003", "nid000004"}));
  EXPECT_EQ(found.job_phase, JobPhase::running);
  EXPECT_FALSE(found.job_is_unknown);
}

TEST(Discover, AJobThatNobodyKnowsIsNotAJobThatNobodyWasAskedAbout) {
  const auto refuse = [](const std::string& error) -> AskHelper {
    return [error](const Argv& argv, double) {
      HelperResult result;
      result.started = true;
      result.exit.code = 1;
      result.err = error;
      result.trouble = argv.back() + ": " + error;
      return result;
    };
  };
  const auto unknown = [&](const std::string& error, const Environment& env) {
    return discover(env, refuse(error), programs({}), Depth::job, "n1").job_is_unknown;
  };
  EXPECT_TRUE(unknown("slurm_load_jobs error: Invalid job id specified", job));
  EXPECT_TRUE(unknown("qstat: Unknown Job Id 9.vm", {{"PBS_JOBID", "9.vm"}}));
  EXPECT_FALSE(unknown("slurm_load_jobs error: Unable to contact slurm controller", job));
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

// A node file as PBS writes it, gone with the test.
struct NodeFile {
  explicit NodeFile(const std::string& text)
      : path(::testing::TempDir() + "ezpz_pbs_nodefile_" + std::to_string(getpid())) {
    std::ofstream(path) << text;
  }
  ~NodeFile() { std::filesystem::remove(path); }
  std::string path;
};

constexpr const char* pbs_json =
    R"({"Jobs":{"7.aurora-pbs-0001.host":{"Job_Owner":"me@uan1",
    "job_state":"R","exec_host":"x1/0*208+x2/0*208","stime":"Sun Nov 29 15:22:35 2026",
    "Resource_List":{"walltime":"30:00:00"},"tolerate_node_failures":"all"}}})";

constexpr const char* pbs_nodes_json =
    R"({"nodes":{"x1":{"Mom":"x1.hsn.cm.site","state":"job-busy"},
                 "x2":{"Mom":"x2.hsn.cm.site","state":"job-busy,down"},
                 "x3":{"state":"down"}}})";

TEST(Discover, PbsIsRecognisedAndItsNodeFileRead) {
  const NodeFile file("x1.hsn.cm.site\nx1.hsn.cm.site\nx2.hsn.cm.site\nx2.hsn.cm.site\n");
  Fake fake;
  const Environment env = {{"PBS_JOBID", "123.aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov"},
                           {"PBS_NODEFILE", file.path}};
  const Discovery found = discover(env, fake.ask(), programs({}), Depth::environment, "x1");
  EXPECT_TRUE(fake.asked.empty());
  EXPECT_EQ(found.scheduler, SchedulerKind::pbs);
  EXPECT_EQ(found.hosts, (Hosts{"x1.hsn.cm.site", "x2.hsn.cm.site"}));
  EXPECT_EQ(found.cluster, "aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov");
}

TEST(Discover, PbsTellsTheRestAndTheNodeFileKeepsItsSpelling) {
  const NodeFile file("x1.hsn.cm.site\nx2.hsn.cm.site\n");
  Fake fake{{{"qstat -u me", "7.aurora-pbs-0* me q j 1 2 2 -- 30:00 R 00:01\n"},
             {"qstat -f -F json 7", pbs_json},
             {"pbsnodes", pbs_nodes_json}},
            {}};
  const Environment env = {
      {"PBS_JOBID", "7.aurora-pbs-0001.host"}, {"PBS_NODEFILE", file.path}, {"USER", "me"}};
  const Discovery found = discover(env, fake.ask(), programs({}), Depth::everything, "x1");
  EXPECT_EQ(found.hosts, (Hosts{"x1.hsn.cm.site", "x2.hsn.cm.site"}));
  EXPECT_EQ(found.why.at("hosts"), "PBS_NODEFILE");
  EXPECT_EQ(found.end_time_s, *slurm::parse_time("2026-11-29T15:22:35") + 30 * 3600);
  EXPECT_NE(found.why.at("end_time_s").find("time zone"), std::string::npos);
  EXPECT_EQ(found.job_state, "R");
  EXPECT_EQ(found.no_kill, true);
  EXPECT_EQ(found.running_jobs, Hosts{"7"});
  EXPECT_EQ(found.unfit_hosts, (States{{"x2.hsn.cm.site", "job-busy,down"}}));
  EXPECT_TRUE(found.trouble.empty());
}

TEST(Discover, WithoutItsNodeFilePbsIsAskedForTheHosts) {
  Fake fake{{{"qstat -f -F json 7", pbs_json}}, {}};
  const Discovery found =
      discover({{"PBS_JOBID", "7.aurora-pbs-0001.host"}, {"PBS_NODEFILE", "/nowhere/7"}},
               fake.ask(), programs({}), Depth::environment, "x1");
  EXPECT_EQ(found.hosts, (Hosts{"x1", "x2"}));
  ASSERT_EQ(found.trouble.size(), 1U);
  EXPECT_NE(found.trouble[0].find("/nowhere/7"), std::string::npos);
}

TEST(Discover, JsonThatAUsersVariableBreaksIsAskedForAsText) {
  Fake fake{{{"json", R"({"Jobs":{"7.srv":{"job_state":"R","Variable_List":{"A":"say "no""}}}})"},
             {"qstat -f -w 7.srv", "Job Id: 7.srv\n    job_state = R\n    exec_host = h1/0\n"}},
            {}};
  const Discovery found =
      discover({{"PBS_JOBID", "7.srv"}}, fake.ask(), programs({}), Depth::job, "h1");
  EXPECT_EQ(found.hosts, Hosts{"h1"});
  EXPECT_EQ(found.why.at("job_state"), "qstat -f -w");
  EXPECT_EQ(found.no_kill, false);
  ASSERT_EQ(found.trouble.size(), 1U);
  EXPECT_NE(found.trouble[0].find("JSON"), std::string::npos);
}

TEST(Discover, AServerThatCannotBeReachedIsNotAskedEverythingElse) {
  int asked = 0;
  const AskHelper ask = [&asked](const Argv& argv, double) {
    ++asked;
    HelperResult fails;
    fails.started = true;
    fails.exit.code = 1;
    fails.err = argv[0] + ": cannot connect to server srv (errno=15010)\n";
    fails.trouble = argv[0] + ": exit code 1: " + fails.err;
    return fails;
  };
  const Discovery found = discover({{"PBS_JOBID", "7.srv"}, {"USER", "me"}}, ask, programs({}),
                                   Depth::everything, "h1");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(found.trouble.size(), 1U);
  EXPECT_EQ(found.job_id, "7.srv");
}

TEST(Discover, BothSchedulersVariablesAreSlurmsLookAlikes) {
  Environment env = job;
  env["PBS_JOBID"] = "42.lab";
  Fake fake;
  EXPECT_EQ(discover(env, fake.ask(), programs({}), Depth::environment, "h").scheduler,
            SchedulerKind::slurm);
}

TEST(Discover, WithoutASchedulerThatIsTheAnswer) {
  Fake fake;
  const Discovery found = discover({}, fake.ask(), programs({}), Depth::everything, "h");
  EXPECT_EQ(found.scheduler, SchedulerKind::none);
  EXPECT_TRUE(fake.asked.empty());
  EXPECT_FALSE(found.user.empty());
  EXPECT_TRUE(scheduler(SchedulerKind::none).job_sources.empty());
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
