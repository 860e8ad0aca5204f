#include "launch/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "base/hostlist.h"
#include "base/text.h"
#include "launch/testing.h"

namespace ezpz::launch {
namespace {

TEST(Srun, GoldenFirstAttempt) { expect_golden("srun_first", plan_srun(request())); }

TEST(Srun, GoldenRelaunchAfterANodeLoss) {
  Request r = request();
  r.hosts = nodes("nid000004,nid000001");
  r.excluded = nodes("nid000002,gone0001");
  r.attempt = 2;
  r.attempt_id = "7.1f.2";
  r.overlap = true;
  expect_golden("srun_relaunch", plan_srun(r));
}

TEST(Srun, GoldenWithoutGpusRankEnvOrKnownCpus) {
  Request r = request();
  r.gpus_per_node = 0;
  r.cpus_per_rank = 0;
  r.rank_env = false;
  r.ranks = 3;
  r.ranks_per_node = 2;
  r.command = {"sh", "-c", "echo \"$SLURM_PROCID\"; it's fine"};
  expect_golden("srun_plain", plan_srun(r));
}

TEST(Srun, GoldenUserFlagsReplaceOursOfTheSameMeaning) {
  Request r = request();
  r.launcher_flags = {"-c", "8", "--kill-on-bad-exit=0", "-m", "cyclic", "--gpus-per-task=1"};
  r.user_env = {{"HF_TOKEN", "hf_abc"}, {"NCCL_DEBUG", "INFO WARN"}, {"OLD", std::nullopt}};
  expect_golden("srun_user_flags", plan_srun(r));
}

TEST(Local, GoldenFourSimulatedNodes) {
  Request r = request();
  r.hosts = nodes("sim[1-2]");
  r.allocation = nodes("sim[1-4]");
  r.ranks = 4;
  r.ranks_per_node = 2;
  expect_golden("local_first", plan_local(r));
}

TEST(Srun, RanksFollowSlurmsNodeOrderNotTheHostfiles) {
  Request r = request();
  r.hosts = nodes("nid000003,nid000001");  // a spare that sorts before active[0] came in last
  const Result<Plan> plan = plan_srun(r);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->host_order, (std::vector<std::string>{"nid000001", "nid000003"}));
  EXPECT_EQ(plan->master_addr, "nid000001");
  EXPECT_EQ(plan->host_of_rank.at(0), "nid000001");
  EXPECT_EQ(plan->host_of_rank.at(4), "nid000003");
  EXPECT_EQ(plan->host_of_rank.size(), 8U);
}

TEST(Srun, TheOrderIsTheAllocationsEvenWhereNamesSortOtherwise) {
  EXPECT_EQ(spellings(slurm_node_order(nodes("a10,a9,b1"), nodes("b[1-2],a[9-10]"))),
            (std::vector<std::string>{"b1", "a9", "a10"}));
  EXPECT_EQ(spellings(slurm_node_order(nodes("b,a"), {})), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(spellings(slurm_node_order(nodes("x,b-hsn0,a"), nodes("a,b"))),
            (std::vector<std::string>{"a", "b-hsn0", "x"}));
}

TEST(Srun, ExcludesOnlyRetiredHostsOfTheAllocationAndNeverAnActiveOne) {
  Request r = request();
  r.excluded = nodes("nid000002,nid000003,nid000004,unknown1");
  const Result<Plan> plan = plan_srun(r);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(has(plan->argv, "--exclude=nid[000003-000004]"));
  r.excluded = nodes("unknown1");
  const Argv argv = plan_srun(r)->argv;
  EXPECT_EQ(std::count_if(argv.begin(), argv.end(),
                          [](const std::string& w) { return w.rfind("--exclude", 0) == 0; }),
            0);
}

TEST(Srun, NothingOfTheJobsOwnShapeIsInherited) {
  const Result<Plan> plan = plan_srun(request());
  ASSERT_TRUE(plan.ok());
  for (const char* name :
       {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_DISTRIBUTION",
        "SLURM_HOSTFILE", "SLURM_STDOUTMODE", "SLURM_LABELIO", "SLURM_NO_KILL",
        "SLURM_GPUS_PER_TASK", "SLURM_EXPORT_ENV", "SLURM_TIMELIMIT", "SLURM_CPUS_PER_TASK",
        "SRUN_CPUS_PER_TASK", "SLURM_TASKS_PER_NODE", "PMI_RANK", "EZPZ_MASTER_ADDR"}) {
    EXPECT_TRUE(unset(*plan, name)) << name;
  }
  EXPECT_FALSE(plan->env.count("SLURM_JOB_ID"));
  EXPECT_EQ(set_to(*plan, "EZPZ_ATTEMPT"), "1");
  EXPECT_EQ(set_to(*plan, "EZPZ_ATTEMPT_ID"), "7.1f.1");
  EXPECT_EQ(set_to(*plan, "EZPZ_MASTER_PORT"), "23456");
}

TEST(Srun, AVariableTheUserSetsOnPurposeStays) {
  Request r = request();
  r.user_env["SLURM_LABELIO"] = "1";
  EXPECT_EQ(set_to(*plan_srun(r), "SLURM_LABELIO"), "1");
}

TEST(Srun, AJobsCpusPerTaskIsLeftWhereNothingBetterIsKnown) {
  Request r = request();
  r.cpus_per_rank = 0;
  EXPECT_FALSE(plan_srun(r)->env.count("SLURM_CPUS_PER_TASK"));
}

TEST(Srun, EveryFormOfAUserFlagIsRecognised) {
  const auto argv_with = [](const Argv& flags) {
    Request r = request();
    r.launcher_flags = flags;
    const Result<Plan> plan = plan_srun(r);
    return plan.ok() ? plan->argv : Argv{plan.error().one_line()};
  };
  EXPECT_FALSE(has(argv_with({"-c4"}), "-c16"));
  EXPECT_FALSE(has(argv_with({"-c", "4"}), "-c16"));
  EXPECT_FALSE(has(argv_with({"--cpus-per-task", "4"}), "-c16"));
  EXPECT_FALSE(has(argv_with({"--cpus-per-task=4"}), "-c16"));
  EXPECT_FALSE(has(argv_with({"-lv"}), "--verbose"));
  EXPECT_FALSE(has(argv_with({"-K0"}), "--kill-on-bad-exit=1"));
  EXPECT_FALSE(has(argv_with({"-G8"}), "--gpus-per-node=4"));
  EXPECT_FALSE(has(argv_with({"--gres=gpu:4"}), "--gpus-per-node=4"));
  EXPECT_TRUE(has(argv_with({"--cpu-bind=cores"}), "-c16"));
  EXPECT_TRUE(has(argv_with({"--cpu-bind=cores"}), "--cpu-bind=cores"));
  EXPECT_TRUE(has(argv_with({"-l"}), "--verbose"));
}

TEST(Srun, UserFlagsComeAfterOursAndBeforeTheCommand) {
  Request r = request();
  r.launcher_flags = {"--cpu-bind=cores", "--label"};
  const Argv argv = plan_srun(r)->argv;
  const auto at = std::find(argv.begin(), argv.end(), "--cpu-bind=cores");
  ASSERT_NE(at, argv.end());
  EXPECT_EQ(Argv(at, argv.end()), (Argv{"--cpu-bind=cores", "--label", "/opt/ezpz/bin/ezpz", "rank",
                                        "--", "python3", "train.py", "--lr", "1e-4"}));
}

TEST(Srun, FlagsThatWouldUndoASwapAreRefused) {
  for (const char* flag : {"-wnid000001", "--nodelist=nid000001", "-x", "--exclude=a", "-r1"}) {
    Request r = request();
    r.launcher_flags = {flag};
    EXPECT_FALSE(plan_srun(r).ok()) << flag;
  }
}

TEST(Srun, ALayoutTheUserChoseIsNotPredicted) {
  Request r = request();
  r.launcher_flags = {"--distribution=cyclic"};
  const Result<Plan> plan = plan_srun(r);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->host_of_rank.empty());
  EXPECT_FALSE(has(plan->argv, "--distribution=block"));
}

TEST(Srun, ABareFileNameIsNotTakenForAHost) {
  Request r = request();
  r.hostfile_path = "active.hostfile";
  EXPECT_TRUE(has(plan_srun(r)->argv, "--nodelist=./active.hostfile"));
}

TEST(Srun, WithoutAHostfileTheHostsThemselvesAreNamed) {
  Request r = request();
  r.hostfile_path.clear();
  EXPECT_TRUE(has(plan_srun(r)->argv, "--nodelist=nid[000001-000002]"));
}

TEST(Srun, RefusalsAreOneSentence) {
  const auto refused = [](void (*change)(Request&)) {
    Request r = request();
    change(r);
    const Result<Plan> plan = plan_srun(r);
    return plan.ok() ? "accepted" : plan.error().one_line();
  };
  EXPECT_EQ(
      refused([](Request& r) { r.heterogeneous = true; }),
      "heterogeneous jobs are not supported: job 7 (submit the job with one set of resources)");
  EXPECT_NE(refused([](Request& r) { r.command.clear(); }), "accepted");
  EXPECT_NE(refused([](Request& r) { r.hosts.clear(); }), "accepted");
  EXPECT_NE(refused([](Request& r) { r.hosts.push_back(r.hosts[0]); }), "accepted");
  EXPECT_NE(refused([](Request& r) { r.ranks = 1; }), "accepted");
  EXPECT_NE(refused([](Request& r) { r.self_path = "ezpz"; }), "accepted");
}

TEST(MaskSecrets, ValuesOfSecretFlagsAreHiddenAndOthersAreNot) {
  EXPECT_EQ(mask_secrets({"python3", "t.py", "--api-key=hunter2", "--hf_token", "abc", "--password",
                          "--tokenizer", "llama", "--max-tokens=5"}),
            (Argv{"python3", "t.py", "--api-key=***", "--hf_token", "***", "--password",
                  "--tokenizer", "llama", "--max-tokens=5"}));
}

TEST(Local, RanksFollowTheOrderGiven) {
  Request r = request();
  r.hosts = nodes("sim3,sim1");
  r.ranks = 3;
  r.ranks_per_node = 2;
  const Result<Plan> plan = plan_local(r);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->signals, SignalRoute::process);
  EXPECT_EQ(plan->master_addr, "127.0.0.1") << "a simulated node has no address";
  EXPECT_EQ(plan->host_of_rank,
            (std::map<int, std::string>{{0, "sim3"}, {1, "sim3"}, {2, "sim1"}}));
  r.launcher_flags = {"--x"};
  EXPECT_FALSE(plan_local(r).ok());
}

TEST(Launchers, AutoFollowsTheJob) {
  using site::SchedulerKind;
  const auto name = [](const LauncherWish& wish) {
    const auto launcher = choose_launcher(wish);
    return launcher.ok() ? std::string((*launcher)->name) : launcher.error().one_line();
  };
  EXPECT_EQ(name({.job = SchedulerKind::slurm}), "srun");
  EXPECT_EQ(name({.suggestion = "srun"}), "local");
  EXPECT_EQ(name({.asked = "local", .job = SchedulerKind::slurm, .suggestion = "srun"}), "local");
  EXPECT_EQ(name({.asked = "hydra", .job = SchedulerKind::slurm}), "hydra");
  EXPECT_EQ(name({.job = SchedulerKind::pbs, .suggestion = "pals"}), "pals");
  EXPECT_EQ(name({.job = SchedulerKind::pbs, .suggestion = "openmpi"}), "openmpi");
  EXPECT_NE(name({.job = SchedulerKind::pbs}).find("no launcher was found"), std::string::npos);
  const auto unknown = choose_launcher({.asked = "srum", .job = SchedulerKind::slurm});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().one_line().find("did you mean 'srun'?"), std::string::npos);
}

TEST(Launchers, AutoTakesTheInstalledMpiexecForTheHostsOfAFile) {
  using site::SchedulerKind;
  const auto hydra = [] { return find_launcher("hydra"); };
  const auto nothing = []() -> const Launcher* { return nullptr; };
  const auto name = [](const LauncherWish& wish) { return (*choose_launcher(wish))->name; };
  EXPECT_EQ(name({.has_hostfile = true, .installed = hydra}), "hydra");
  EXPECT_EQ(name({.has_hostfile = true, .installed = nothing}), "local");
  EXPECT_EQ(name({.has_hostfile = false, .installed = hydra}), "local");
  EXPECT_EQ(name({.suggestion = "srun", .has_hostfile = true, .installed = hydra}), "hydra")
      << "srun does nothing outside a job";
  EXPECT_EQ(name({.job = SchedulerKind::pbs, .installed = hydra}), "hydra");
}

TEST(Signals, GoToTheStep) {
  EXPECT_EQ(signal_argv(SIGTERM, "7.0"), (Argv{"scancel", "--signal=TERM", "7.0"}));
  EXPECT_EQ(signal_argv(SIGUSR1, "7.0"), (Argv{"scancel", "--signal=USR1", "7.0"}));
  EXPECT_EQ(signal_argv(40, "7.0"), (Argv{"scancel", "--signal=40", "7.0"}));
  EXPECT_EQ(cancel_argv("7.0"), (Argv{"scancel", "7.0"}));
}

// A trainer that saves when told to stop was killed while it saved: scancel had reached it and
// failed all the same, because of a spare node, and srun was signalled instead, which kills.
TEST(Signal, ReachedTheRanksAlthoughScancelComplainsOfANodeWithoutThem) {
  EXPECT_TRUE(signalled_in_spite_of(
      "scancel: exit code 225: scancel: error: Kill job error on job step id 1: Invalid job id "
      "specified"));
  EXPECT_FALSE(signalled_in_spite_of("scancel: timed out after 5 s"));
  EXPECT_FALSE(signalled_in_spite_of("scancel: error: Unable to contact slurm controller"));
}

TEST(Render, SecretsAreMasked) {
  for (const char* name :
       {"HF_TOKEN", "WANDB_API_KEY", "PBS_JOBCOOKIE", "db_password", "MY_SECRET"}) {
    EXPECT_TRUE(looks_secret(name)) << name;
  }
  EXPECT_FALSE(looks_secret("NCCL_DEBUG"));
  Request r = request();
  r.user_env["HF_TOKEN"] = "hf_abc";
  const std::string text = render(*plan_srun(r));
  EXPECT_EQ(text.find("hf_abc"), std::string::npos);
  EXPECT_NE(text.find("HF_TOKEN=***"), std::string::npos);
}

}  // namespace
}  // namespace ezpz::launch
