// The planners of mpiexec, and which mpiexec it is.
#include <gtest/gtest.h>

#include "base/text.h"
#include "launch/inherit.h"
#include "launch/mpi_program.h"
#include "launch/testing.h"

namespace ezpz::launch {
namespace {

Request mpi_request() {
  Request r = request();
  r.gpus_per_node = 0;
  r.cpus_per_rank = 0;
  r.inherited = {"HF_HOME", "NCCL_DEBUG", "PATH"};
  return r;
}

Request uneven() {
  Request r = mpi_request();
  r.hosts = nodes("n1,n2,n3,n4");
  r.ranks = 6;
  r.ranks_per_node = 2;
  return r;
}

TEST(Hydra, GoldenFirstAttempt) {
  Request r = mpi_request();
  r.program = "/usr/bin/mpiexec.hydra";
  r.user_env = {{"WANDB_API_KEY", "secret value"}};
  expect_golden("hydra_first", plan_hydra(r));
}

TEST(Hydra, GoldenUnevenRanksWithUserFlags) {
  Request r = uneven();
  r.launcher_flags = {"-launcher", "rsh", "-launcher-exec", "/opt/agent"};
  expect_golden("hydra_uneven", plan_hydra(r));
}

TEST(Hydra, IntelsIsToldToLayRanksOutAsAsked) {
  Request r = mpi_request();
  r.intel_mpi = true;
  EXPECT_EQ(set_to(*plan_hydra(r), "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT"), "0");
  EXPECT_EQ(plan_hydra(mpi_request())->env.count("I_MPI_JOB_RESPECT_PROCESS_PLACEMENT"), 0U);
}

TEST(Hydra, TheLastVariableOfItsEnvironmentIsOneThatNoRankNeeds) {
  Request r = mpi_request();
  r.user_env = {{"lower_case", "1"}};
  const Result<Plan> plan = plan_hydra(r);
  EXPECT_EQ(plan->env.rbegin()->first, "zzzz_ezpz_last");
  EXPECT_EQ(shell_join(plan->argv).find("zzzz"), std::string::npos);
}

TEST(OpenMpi, GoldenFirstAttempt) {
  Request r = mpi_request();
  r.as_root = true;
  r.user_env = {{"WANDB_API_KEY", "secret value"}, {"OLD", std::nullopt}};
  expect_golden("openmpi_first", plan_openmpi(r));
}

TEST(OpenMpi, GoldenUnevenRanksWithoutAHostfile) {
  Request r = uneven();
  r.hostfile_path.clear();
  r.rank_env = false;
  r.cpu_bind = "numa";
  r.launcher_flags = {"--mca", "plm", "rsh"};
  expect_golden("openmpi_uneven", plan_openmpi(r));
}

TEST(OpenMpi, RanksAreAskedToStopByACommandThatIsNoPartOfTheAttempt) {
  const Result<Plan> plan = plan_openmpi(mpi_request());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->signals, SignalRoute::command);
  const std::string words = shell_join(plan->signal_command);
  EXPECT_NE(words.find("--host nid000001:1,nid000002:1"), std::string::npos) << words;
  EXPECT_TRUE(has(plan->signal_command, "--attempt-id=7.1f.1"));
  EXPECT_TRUE(has(plan->signal_command, "--signal=15"));
  EXPECT_TRUE(has(plan->signal_command, "EZPZ_ATTEMPT_ID=")) << "or it would signal itself";
}

TEST(OpenMpi, RootIsAllowedOnlyWhereItIsRoot) {
  EXPECT_FALSE(has(plan_openmpi(mpi_request())->argv, "--allow-run-as-root"));
}

TEST(Pals, GoldenFirstAttempt) {
  Request r = mpi_request();
  r.hosts = make_nodes({"x1921c7s1b0n0-hsn0.hsn.cm.sunspot.alcf.anl.gov",
                        "x1921c7s2b0n0-hsn0.hsn.cm.sunspot.alcf.anl.gov"},
                       NodeNaming{{".*"}, {"-hsn#"}});
  r.ranks = 24;
  r.ranks_per_node = 12;
  r.label = true;
  r.cpu_bind = "list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100";
  r.user_env = {{"WANDB_API_KEY", "secret value"}};
  expect_golden("pals_first", plan_pals(r));
}

TEST(Pals, GoldenUserFlagsReplaceOursOfTheSameMeaning) {
  Request r = mpi_request();
  r.hostfile_path.clear();
  r.label = true;
  r.cpu_bind = "list:1-8";
  r.launcher_flags = {"--cpu-bind=depth", "--no-label", "-envnone", "--env", "A=B"};
  expect_golden("pals_user_flags", plan_pals(r));
}

TEST(Pals, HostsAreFilledInOrderAndNoneIsLeftEmpty) {
  Request r = uneven();
  r.ranks = 10;
  r.ranks_per_node = 3;
  const Result<Plan> plan = plan_pals(r);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->host_of_rank.at(8), "n3");
  EXPECT_EQ(plan->host_of_rank.at(9), "n4");
  EXPECT_EQ(set_to(*plan, "EZPZ_RANKS_PER_NODE"), "3(x3),1");
  const Result<Plan> empty = plan_pals(uneven());
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().one_line().find("fill 3 of 4 hosts"), std::string::npos);
}

using Planner = Result<Plan> (*)(const Request&);
constexpr Planner all[] = {plan_hydra, plan_openmpi, plan_pals};

TEST(Mpi, RanksFollowTheHostfilesOrder) {
  for (const Planner plan_of : all) {
    Request r = mpi_request();
    r.hosts = nodes("nid000003,nid000001");
    const Result<Plan> plan = plan_of(r);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->host_order, (std::vector<std::string>{"nid000003", "nid000001"}));
    EXPECT_EQ(plan->host_of_rank.at(3), "nid000003");
    EXPECT_EQ(plan->host_of_rank.at(4), "nid000001");
    EXPECT_EQ(set_to(*plan, "EZPZ_MASTER_ADDR"), "nid000003");
    EXPECT_EQ(set_to(*plan, "EZPZ_RANKS_PER_NODE"), "4(x2)");
  }
}

TEST(Mpi, NoValueOfAVariableIsOnACommandLine) {
  for (const Planner plan_of : all) {
    Request r = mpi_request();
    r.user_env = {{"HF_TOKEN", "hf_abc"}, {"LONG", std::string(100'000, 'v')}};
    const Result<Plan> plan = plan_of(r);
    ASSERT_TRUE(plan.ok());
    for (const Argv& argv : {plan->argv, plan->signal_command}) {
      const std::string words = shell_join(argv);
      EXPECT_EQ(words.find("hf_abc"), std::string::npos) << plan->launcher;
      EXPECT_EQ(words.find("vvvv"), std::string::npos) << plan->launcher;
    }
    EXPECT_EQ(set_to(*plan, "HF_TOKEN"), "hf_abc") << "it is in the launcher's environment";
  }
}

TEST(Mpi, FlagsThatNameHostsAreRefused) {
  const std::pair<Planner, Argv> cases[] = {
      {plan_hydra, {"-f", "x"}},           {plan_hydra, {"-hosts=a"}},
      {plan_hydra, {"-machinefile", "x"}}, {plan_openmpi, {"--hostfile", "x"}},
      {plan_openmpi, {"-H", "a"}},         {plan_pals, {"--hostfile=x"}},
      {plan_pals, {"--hosts", "a"}}};
  for (const auto& [plan_of, flags] : cases) {
    Request r = mpi_request();
    r.launcher_flags = flags;
    const Result<Plan> plan = plan_of(r);
    ASSERT_FALSE(plan.ok()) << flags[0];
    EXPECT_NE(plan.error().one_line().find("undo a swap"), std::string::npos);
  }
}

TEST(Mpi, AUsersLayoutReplacesOursAndIsNotGuessed) {
  const std::pair<Planner, Argv> cases[] = {{plan_hydra, {"-n4"}},
                                            {plan_hydra, {"-perhost", "1"}},
                                            {plan_openmpi, {"--map-by", "node"}},
                                            {plan_pals, {"--ppn=2"}}};
  for (const auto& [plan_of, flags] : cases) {
    Request r = mpi_request();
    r.launcher_flags = flags;
    const Result<Plan> plan = plan_of(r);
    ASSERT_TRUE(plan.ok()) << flags[0];
    EXPECT_TRUE(plan->host_of_rank.empty()) << flags[0];
    EXPECT_TRUE(unset(*plan, "EZPZ_RANKS_PER_NODE")) << flags[0];
  }
  Request r = mpi_request();
  r.launcher_flags = {"-n4"};
  EXPECT_FALSE(has(plan_hydra(r)->argv, "8"));
}

TEST(Mpi, RanksOfAnOuterLauncherDoNotShowThrough) {
  for (const Planner plan_of : all) {
    const Result<Plan> plan = plan_of(mpi_request());
    for (const char* name : {"PMI_RANK", "PALS_RANKID", "OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE"}) {
      EXPECT_TRUE(unset(*plan, name)) << name;
    }
  }
}

TEST(Mpi, ACommandBesideTheAttemptRunsOnceOnEachHost) {
  Request r = mpi_request();
  r.launcher_flags = {"-launcher", "rsh"};
  r.user_env = {{"HF_TOKEN", "hf_abc"}};
  const Result<Argv> argv = beside_argv(plan_hydra, r, nodes("n7,n8,n9"), {"/opt/ezpz", "x"});
  ASSERT_TRUE(argv.ok());
  const std::string words = shell_join(*argv);
  EXPECT_EQ(argv->front(), "env");
  EXPECT_NE(words.find("mpiexec -hosts n7,n8,n9 -ppn 1 -n 3 "), std::string::npos) << words;
  EXPECT_NE(words.find("-launcher rsh /opt/ezpz x"), std::string::npos) << words;
  EXPECT_EQ(words.find("HF_TOKEN"), std::string::npos) << words;
}

TEST(Inherit, WhatProgramsAreTunedWithGoesAlongAndWhatIsOfThisHostStays) {
  for (const char* name :
       {"PATH", "PYTHONPATH", "NCCL_SOCKET_IFNAME", "HF_TOKEN", "OMP_NUM_THREADS", "EZPZ_TEST_RUN",
        "https_proxy", "CUDA_VISIBLE_DEVICES"}) {
    EXPECT_TRUE(goes_along(name)) << name;
  }
  for (const char* name :
       {"HOME", "HOSTNAME", "DISPLAY", "TMPDIR", "PWD", "PBS_JOBCOOKIE", "SSH_AUTH_SOCK",
        "SLURM_PROCID", "PMI_RANK", "BASH_FUNC_module%%", "AWS_SECRET_ACCESS_KEY"}) {
    EXPECT_FALSE(goes_along(name)) << name;
  }
  EXPECT_EQ(inherited_names({{"PATH", "/bin"}, {"HOME", "/"}, {"NCCL_X%%", "() {"}}),
            (std::vector<std::string>{"PATH"}));
}

constexpr const char* hydra_version =
    "HYDRA build details:\n    Version:                                 4.0.2\n";

TEST(MpiProgram, TheBinarySaysWhichItIs) {
  const std::tuple<const char*, const char*, MpiKind> cases[] = {
      {hydra_version, "/usr/bin/mpiexec.hydra", MpiKind::hydra},
      {"mpiexec (OpenRTE) 4.1.4\n\nReport bugs to http://...", "/usr/bin/orterun",
       MpiKind::openmpi},
      {"mpirun (Open MPI) 5.0.3\n", "/opt/x/mpirun", MpiKind::openmpi},
      {"prterun (PRRTE) 3.0.5\n", "/opt/x/prterun", MpiKind::prrte},
      {"Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005\n", "/opt/intel/mpiexec",
       MpiKind::intel},
      {"mpiexec version 1.2.12\n", "/opt/cray/pals/1.2.12/bin/mpiexec", MpiKind::pals},
      {"mpiexec PALS 1.4\n", "/usr/bin/mpiexec", MpiKind::pals},
      {"mpiexec: unknown option\n", "/usr/bin/mpiexec", MpiKind::unknown}};
  for (const auto& [text, path, kind] : cases) {
    EXPECT_EQ(mpi_kind(text, path), kind) << text;
  }
}

// A machine with these programs: name -> what --version prints; "" is no answer in time.
MpiSearch machine_with(const std::map<std::string, std::string>& programs) {
  MpiSearch search;
  search.find = [programs](const std::string& name) {
    return programs.count(name) != 0 ? "/bin/" + name : "";
  };
  search.resolve = [](const std::string& path) { return path; };
  search.ask = [programs](const Argv& argv, double) {
    HelperResult result;
    result.started = true;
    result.out = programs.at(argv[0].substr(5));
    result.timed_out = result.out.empty();
    if (result.timed_out) result.trouble = "no answer in time";
    return result;
  };
  return search;
}

TEST(MpiProgram, TheRightOneOfSeveralIsFound) {
  const MpiSearch search =
      machine_with({{"mpiexec", "mpiexec (OpenRTE) 4.1.4"}, {"mpiexec.hydra", hydra_version}});
  EXPECT_EQ(find_mpi(*find_launcher("hydra"), search)->path, "/bin/mpiexec.hydra");
  EXPECT_EQ(find_mpi(*find_launcher("openmpi"), search)->path, "/bin/mpiexec");
  EXPECT_EQ(installed_mpi(search)->name, "openmpi");
  EXPECT_EQ(installed_mpi(machine_with({})), nullptr);
  EXPECT_EQ(installed_mpi(machine_with({{"mpiexec", "something"}})), nullptr);
}

TEST(MpiProgram, EveryOneInPathIsToldWithItsLauncher) {
  const auto found =
      installed_programs(machine_with({{"mpiexec", "something"},
                                       {"mpirun", ""},
                                       {"mpiexec.hydra", hydra_version},
                                       {"mpirun.openmpi", "mpirun (Open MPI) 5.0"}}));
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].launcher, nullptr);
  EXPECT_EQ(found[0].answer, "/bin/mpiexec is of an unknown kind");
  EXPECT_EQ(found[1].launcher, nullptr);
  EXPECT_EQ(found[1].answer, "/bin/mpirun: no answer in time");
  EXPECT_EQ(found[2].launcher, find_launcher("hydra"));
  EXPECT_EQ(found[3].launcher, find_launcher("openmpi"));
  EXPECT_TRUE(installed_programs(machine_with({})).empty());
}

TEST(MpiProgram, AWrongOneFirstInPathIsSaidAndNotUsed) {
  const auto found = find_mpi(*find_launcher("pals"), machine_with({{"mpiexec", hydra_version}}));
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().one_line().find("/bin/mpiexec is MPICH's Hydra"), std::string::npos);
  const auto silent = find_mpi(*find_launcher("pals"), machine_with({{"mpiexec", ""}}));
  ASSERT_FALSE(silent.ok());
  EXPECT_NE(silent.error().one_line().find("no answer in time"), std::string::npos);
}

}  // namespace
}  // namespace ezpz::launch
