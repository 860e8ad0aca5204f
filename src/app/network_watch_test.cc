#include "app/network_watch.h"

#include <gtest/gtest.h>

#include "base/hostlist.h"
#include "launch/testing.h"

namespace ezpz::app {
namespace {

site::Machine machine(const std::string& name) {
  const auto all = site::load_machines();
  EXPECT_TRUE(all.ok());
  const site::Machine* found = site::find_machine(*all, name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

TEST(NetworkWatch, WhereAPluginIsExpectedSeveralHostsAreMadeToTellTheirNetwork) {
  for (const char* name : {"perlmutter", "frontier", "polaris"}) {
    const NetworkWatch watch = watch_network({}, machine(name), {}, 2);
    EXPECT_TRUE(watch.watched);
    EXPECT_EQ(watch.env, (EnvChanges{{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "INIT,NET"}}));
    EXPECT_EQ(watch.wish.expected, "AWS Libfabric");
    EXPECT_FALSE(watch.wish.remedy.empty());
    EXPECT_FALSE(watch.wish.required);
  }
}

TEST(NetworkWatch, NothingIsSetForOneHostOrWhereNothingIsExpected) {
  EXPECT_TRUE(watch_network({}, machine("perlmutter"), {}, 1).env.empty());
  for (const char* name : {"aurora", "sunspot", "generic"}) {
    const NetworkWatch watch = watch_network({}, machine(name), {}, 4);
    EXPECT_TRUE(watch.env.empty()) << name;
    EXPECT_FALSE(watch.watched) << name;
  }
}

TEST(NetworkWatch, WhatTheUserHasSetIsLeftAloneWholly) {
  for (const std::string name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) {
    LaunchOptions by_flag;
    by_flag.env[name] = "WARN";
    LaunchOptions inherited;
    inherited.inherit = {name};
    const site::Environment exported = {{name, "VERSION"}};
    for (const NetworkWatch& watch : {watch_network(by_flag, machine("perlmutter"), {}, 2),
                                      watch_network(inherited, machine("perlmutter"), {}, 2),
                                      watch_network({}, machine("perlmutter"), exported, 2)}) {
      EXPECT_TRUE(watch.watched);
      EXPECT_TRUE(watch.env.empty()) << name;
      EXPECT_NE(watch.why_unseen.find(name), std::string::npos) << watch.why_unseen;
    }
  }
}

TEST(NetworkWatch, ARequiredNetworkIsWatchedOnEveryMachineAndBringsTheMachinesRemedyOnlyForItsOwn) {
  LaunchOptions options;
  options.require_net = "libfabric";
  NetworkWatch watch = watch_network(options, machine("perlmutter"), {}, 2);
  EXPECT_TRUE(watch.wish.required);
  EXPECT_EQ(watch.wish.remedy, "module load nccl/2.24.3");
  options.require_net = "IB";
  watch = watch_network(options, machine("perlmutter"), {}, 2);
  EXPECT_EQ(watch.wish.expected, "IB");
  EXPECT_EQ(watch.wish.remedy, "");
  EXPECT_FALSE(watch_network(options, machine("generic"), {}, 2).env.empty());
}

TEST(NetworkWatch, TheVersionAskedForIsReadFromModulesVariablesAndPaths) {
  EXPECT_EQ(nccl_asked_for({{"LOADEDMODULES", "craype/2.7:nccl/2.24.3:python/3.11"}}), "2.24.3");
  EXPECT_EQ(nccl_asked_for({{"LOADEDMODULES", "aws-ofi-nccl/1.14.0"}}), "");
  EXPECT_EQ(nccl_asked_for({{"NCCL_VERSION", "2.24.3-1"}}), "2.24.3");
  EXPECT_EQ(nccl_asked_for({{"LD_LIBRARY_PATH", "/opt/x/lib:/global/common/nccl/2.24.3/lib"}}),
            "2.24.3");
  EXPECT_EQ(nccl_asked_for({{"LD_LIBRARY_PATH", "/opt/nccl/lib"}}), "");
  EXPECT_EQ(nccl_asked_for({}), "");
}

launch::Request watched(const char* name) {
  launch::Request request = launch::request();
  request.user_env.merge(watch_network({}, machine(name), {}, request.hosts.size()).env);
  return request;
}

TEST(NetworkWatch, GoldenPlansOnMachinesWithAndWithoutAnExpectation) {
  launch::expect_golden("perlmutter_srun", launch::plan_srun(watched("perlmutter")));
  launch::expect_golden("frontier_srun", launch::plan_srun(watched("frontier")));
  launch::expect_golden("aurora_pals", launch::plan_pals(watched("aurora")));
}

}  // namespace
}  // namespace ezpz::app
