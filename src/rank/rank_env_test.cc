#include "rank/rank_env.h"

#include <gtest/gtest.h>

namespace ezpz::rank {
namespace {

std::string value(const Result<EnvChanges>& changes, const std::string& name) {
  if (!changes.ok()) return "error: " + changes.error().one_line();
  const auto found = changes->find(name);
  if (found == changes->end()) return "(left)";
  return found->second.value_or("(removed)");
}

std::string all(const Result<EnvChanges>& changes) {
  std::string text;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK",
                           "MASTER_ADDR", "MASTER_PORT", "EZPZ_NODE"}) {
    text += (text.empty() ? "" : " ") + value(changes, name);
  }
  return text;
}

const site::Environment step = {{"SLURM_PROCID", "5"},
                                {"SLURM_NTASKS", "7"},
                                {"SLURM_STEP_NUM_TASKS", "7"},
                                {"SLURM_LOCALID", "1"},
                                {"SLURM_NODEID", "1"},
                                {"SLURM_STEP_TASKS_PER_NODE", "4,3"},
                                {"SLURM_TASKS_PER_NODE", "4(x6)"},
                                {"SLURM_STEP_NODELIST", "nid[001304,001306]"},
                                {"SLURM_JOB_NODELIST", "nid[001301-001306]"},
                                {"SLURMD_NODENAME", "nid001306"},
                                {"EZPZ_MASTER_PORT", "23456"}};

site::Environment with(site::Environment env, const site::Environment& more) {
  for (const auto& [name, text] : more) env[name] = text;
  return env;
}

TEST(RankEnv, ASlurmStepGivesEverything) {
  EXPECT_EQ(all(map_rank_env(step, "nid001306-hsn0")), "5 7 1 3 1 nid001304 23456 nid001306");
}

TEST(RankEnv, AnExportedMasterOfTheBatchScriptDoesNotSurviveASwap) {
  const auto changes =
      map_rank_env(with(step, {{"MASTER_ADDR", "nid001301"}, {"MASTER_PORT", "29500"}}), "h");
  EXPECT_EQ(value(changes, "MASTER_ADDR"), "nid001304");
  EXPECT_EQ(value(changes, "MASTER_PORT"), "23456");
}

TEST(RankEnv, TheMasterThatEzpzNamesWins) {
  EXPECT_EQ(value(map_rank_env(with(step, {{"EZPZ_MASTER_ADDR", "other"}}), "h"), "MASTER_ADDR"),
            "other");
}

TEST(RankEnv, PalsWinsOverTheBatchShellsSlurmVariables) {
  const site::Environment env = {
      {"PALS_RANKID", "13"},       {"PMI_RANK", "13"},         {"PMI_SIZE", "24"},
      {"PALS_LOCAL_RANKID", "1"},  {"PALS_LOCAL_SIZE", "12"},  {"PALS_NODEID", "1"},
      {"SLURM_PROCID", "0"},       {"SLURM_NTASKS", "1"},      {"SLURM_NODEID", "0"},
      {"SLURMD_NODENAME", "head"}, {"EZPZ_MASTER_ADDR", "x1"}, {"EZPZ_MASTER_PORT", "20001"}};
  EXPECT_EQ(all(map_rank_env(env, "x2")), "13 24 1 12 1 x1 20001 x2");
}

TEST(RankEnv, HydraAndIntelMpiAreRead) {
  const site::Environment env = {{"PMI_RANK", "3"},          {"PMI_SIZE", "4"},
                                 {"MPI_LOCALRANKID", "1"},   {"MPI_LOCALNRANKS", "2"},
                                 {"SLURM_PROCID", "0"},      {"SLURM_STEP_NODELIST", "head"},
                                 {"SLURMD_NODENAME", "head"}};
  EXPECT_EQ(all(map_rank_env(env, "n2")), "3 4 1 2 1 (left) (left) n2");
}

TEST(RankEnv, OpenMpiIsReadAndItsNodeRankIsNotMistakenForANode) {
  const site::Environment env = {
      {"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"OMPI_COMM_WORLD_NODE_RANK", "0"},  {"SLURM_PROCID", "0"}};
  EXPECT_EQ(all(map_rank_env(env, "n2")), "2 4 0 2 1 (left) (left) n2");
}

TEST(RankEnv, PalsWinsOverPmiAndPmiOverOpenMpi) {
  site::Environment env = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "9"}};
  EXPECT_EQ(value(map_rank_env(env, "h"), "RANK"), "1");
  env["PMI_RANK"] = "2";
  env["PMI_SIZE"] = "9";
  EXPECT_EQ(value(map_rank_env(env, "h"), "RANK"), "2");
  env["PALS_RANKID"] = "3";
  EXPECT_EQ(value(map_rank_env(env, "h"), "RANK"), "3");
}

TEST(RankEnv, WhatAnMpiexecDoesNotSayIsAsPlanned) {
  const site::Environment env = {{"PALS_RANKID", "5"}, {"EZPZ_RANKS_PER_NODE", "2(x2),1(x2)"}};
  EXPECT_EQ(all(map_rank_env(env, "h")), "5 6 0 1 3 (left) (left) h");
  const auto uneven = map_rank_env(with(env, {{"PALS_RANKID", "4"},
                                              {"PMI_SIZE", "6"},
                                              {"PALS_LOCAL_RANKID", "0"},
                                              {"PALS_LOCAL_SIZE", "1"}}),
                                   "h");
  EXPECT_EQ(value(uneven, "NODE_RANK"), "2") << "rank 4 of 2,2,1,1 is on the third host";
  EXPECT_EQ(value(map_rank_env(with(env, {{"PALS_NODEID", "7"}}), "h"), "NODE_RANK"), "7");
  EXPECT_FALSE(map_rank_env(with(env, {{"PALS_RANKID", "6"}}), "h").ok());
}

TEST(RankEnv, AStepWhosePluginSpeaksPmiGetsSlurmsPlacement) {
  const auto changes = map_rank_env(with(step, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}}), "h");
  EXPECT_EQ(all(changes), "5 7 1 3 1 nid001304 23456 nid001306");
}

TEST(RankEnv, RepeatedTaskCountsAreUnderstood) {
  site::Environment env = step;
  env.erase("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_EQ(value(map_rank_env(env, "h"), "LOCAL_WORLD_SIZE"), "4");
  env["SLURM_STEP_TASKS_PER_NODE"] = "garbage(";
  EXPECT_EQ(value(map_rank_env(env, "h"), "LOCAL_WORLD_SIZE"), "4");
}

TEST(RankEnv, NoRankAtAllIsAnErrorInOneLine) {
  const auto changes = map_rank_env({{"HOME", "/"}, {"SLURM_NTASKS", "4"}}, "h");
  ASSERT_FALSE(changes.ok());
  EXPECT_NE(changes.error().one_line().find("SLURM_PROCID"), std::string::npos);
}

TEST(RankEnv, DamagedOrContradictingNumbersAreErrors) {
  EXPECT_FALSE(map_rank_env({{"SLURM_PROCID", "x"}}, "h").ok());
  EXPECT_FALSE(map_rank_env({{"SLURM_PROCID", "-1"}}, "h").ok());
  EXPECT_FALSE(map_rank_env({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}, "h").ok());
  EXPECT_FALSE(map_rank_env(with(step, {{"SLURM_LOCALID", "?"}}), "h").ok());
}

TEST(RankEnv, WhatTheLauncherDoesNotTellIsLeft) {
  const auto changes = map_rank_env({{"SLURM_PROCID", "0"}}, "h");
  EXPECT_EQ(all(changes), "0 (left) (left) (left) (left) (left) (left) h");
}

}  // namespace
}  // namespace ezpz::rank
