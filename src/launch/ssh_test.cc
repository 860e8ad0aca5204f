// The planner of ssh, and the words of one ssh.
#include <gtest/gtest.h>

#include "base/text.h"
#include "launch/ssh_words.h"
#include "launch/testing.h"

namespace ezpz::launch {
namespace {

Request ssh_request() {
  Request r = request();
  r.gpus_per_node = 0;
  r.cpus_per_rank = 0;
  r.inherited = {"HF_HOME", "NCCL_DEBUG", "PATH"};
  r.program = "/usr/bin/ssh";
  return r;
}

TEST(Ssh, GoldenFirstAttempt) {
  Request r = ssh_request();
  r.user_env = {{"WANDB_API_KEY", "secret value"}, {"OLD", std::nullopt}};
  expect_golden("ssh_first", plan_ssh(r));
}

TEST(Ssh, GoldenUnevenRanksWithUserFlags) {
  Request r = ssh_request();
  r.hosts = nodes("n3,n1,n2");
  r.ranks = 4;
  r.ranks_per_node = 2;
  r.kill_on_bad_exit = false;
  r.rank_env = false;
  r.launcher_flags = {"-F", "my config", "-p2222", "-o", "ServerAliveInterval=60"};
  expect_golden("ssh_uneven", plan_ssh(r));
}

TEST(Ssh, NoValueOfAVariableIsOnACommandLine) {
  Request r = ssh_request();
  r.user_env = {{"HF_TOKEN", "hf_abc"}};
  const Result<Plan> plan = plan_ssh(r);
  ASSERT_TRUE(plan.ok());
  const std::string words = shell_join(plan->argv);
  EXPECT_EQ(words.find("hf_abc"), std::string::npos);
  EXPECT_NE(words.find("HF_TOKEN"), std::string::npos) << "the name must be told";
  EXPECT_EQ(set_to(*plan, "HF_TOKEN"), "hf_abc") << "it is in the launcher's environment";
}

TEST(Ssh, WhatAHostAnswersBesideTheAttemptDoesNotEndTheOthers) {
  const Result<Argv> argv =
      beside_argv(plan_ssh, ssh_request(), nodes("n7,n8"), {"/opt/ezpz", "node-check"});
  ASSERT_TRUE(argv.ok());
  EXPECT_TRUE(has(*argv, "--hosts=n7,n8"));
  EXPECT_TRUE(has(*argv, "--ranks=2"));
  EXPECT_TRUE(has(*argv, "EZPZ_ATTEMPT_ID="));
  EXPECT_FALSE(has(*argv, "--kill-on-bad-exit"));
}

TEST(Ssh, AHostThatSshCouldTakeForMoreIsRefused) {
  for (const char* host : {"-oProxyCommand=x", "a b", "a;b", "$(x)", "`x`", "a'b", "root@n1", "n%h",
                           "n1/", "", "n\n1", "é"}) {
    EXPECT_TRUE(check_ssh_host(host).has_value()) << host;
  }
  EXPECT_TRUE(check_ssh_host(std::string(300, 'a')).has_value());
  for (const char* host : {"nid000001", "a-b.c_d.example.org", "10.1.2.3", "fe80::1", "N1"}) {
    EXPECT_FALSE(check_ssh_host(host).has_value()) << host;
  }
  Request r = ssh_request();
  r.hosts = make_nodes({"n1", "-oProxyCommand=touch x"}, NodeNaming{});
  EXPECT_FALSE(plan_ssh(r).ok());
}

TEST(Ssh, AUsersFlagsMayNotTakeTheInputTheCommandOrTheHost) {
  for (const Argv& flags :
       {Argv{"-n"}, Argv{"-vn"}, Argv{"-N"}, Argv{"-f"}, Argv{"-tt"}, Argv{"-W", "a:1"}, Argv{"-A"},
        Argv{"-q"}, Argv{"-E", "log"}, Argv{"otherhost"}, Argv{"-p", "22", "otherhost"}, Argv{"--"},
        Argv{"-F"}, Argv{"-"}, Argv{""}}) {
    EXPECT_TRUE(check_ssh_flags(flags).has_value()) << shell_join(flags);
  }
  for (const Argv& flags : {Argv{"-F", "-n"}, Argv{"-Fn"}, Argv{"-v", "-p", "22"}, Argv{"-4Cp22"},
                            Argv{"-J", "gate"}, Argv{"-oUser=me"}, Argv{}}) {
    EXPECT_FALSE(check_ssh_flags(flags).has_value()) << shell_join(flags);
  }
}

TEST(Ssh, WhatMustHoldStandsBeforeTheUsersFlagsAndTheRestBehindThem) {
  const Argv words = ssh_words("", {"-oBatchMode=no", "-oConnectTimeout=60"});
  EXPECT_EQ(words.front(), "ssh");
  const auto at = [&words](const char* word) {
    return std::find(words.begin(), words.end(), word) - words.begin();
  };
  EXPECT_LT(at("-oBatchMode=yes"), at("-oBatchMode=no"));
  EXPECT_LT(at("-oConnectTimeout=60"), at("-oConnectTimeout=5"));
  EXPECT_LT(at("-oConnectTimeout=5"), static_cast<std::ptrdiff_t>(words.size()));
}

TEST(Ssh, TheFarShellGetsThePathQuotedAndNothingElse) {
  EXPECT_EQ(ssh_argv({"ssh"}, "n1", "/opt/ezpz"),
            (Argv{"ssh", "--", "n1", "exec /opt/ezpz ssh-node"}));
  EXPECT_EQ(ssh_argv({"ssh"}, "n1", "/o p/$(x)'s;/ezpz").back(),
            R"(exec '/o p/$(x)'\''s;/ezpz' ssh-node)");
}

TEST(Ssh, ItDoesNotBindCpusAndSaysSo) {
  Request r = ssh_request();
  r.cpu_bind = "cores";
  const Result<Plan> plan = plan_ssh(r);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().one_line().find("--cpu-bind"), std::string::npos);
}

TEST(Ssh, AutoTakesItForTheHostsOfAFileWhereThereIsNoMpi) {
  const auto name = [](const LauncherWish& wish) { return (*choose_launcher(wish))->name; };
  const auto hydra = [] { return find_launcher("hydra"); };
  EXPECT_EQ(name({.has_hostfile = true, .has_ssh = true}), "ssh");
  EXPECT_EQ(name({.has_hostfile = true, .has_ssh = true, .installed = hydra}), "hydra");
  EXPECT_EQ(name({.has_hostfile = true, .has_ssh = false}), "local");
  EXPECT_EQ(name({.has_hostfile = false, .has_ssh = true}), "local");
  EXPECT_EQ(name({.asked = "ssh", .job = site::SchedulerKind::slurm}), "ssh");
}

}  // namespace
}  // namespace ezpz::launch
