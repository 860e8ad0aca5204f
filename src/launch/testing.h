// What the tests of the planners share: a usual request, and the golden files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/hostlist.h"
#include "launch/plan.h"

namespace ezpz::launch {

inline std::vector<Node> nodes(const char* list) {
  return make_nodes(*expand_hostlist(list), NodeNaming{{".*"}, {"-hsn#"}});
}

inline Request request() {
  Request r;
  r.command = {"python3", "train.py", "--lr", "1e-4"};
  r.hosts = nodes("nid[000001-000002]");
  r.allocation = nodes("nid[000001-000004]");
  r.ranks = 8;
  r.ranks_per_node = 4;
  r.hostfile_path = "/home/me/logs/failover-7/active.hostfile";
  r.gpus_per_node = 4;
  r.cpus_per_rank = 16;
  r.self_path = "/opt/ezpz/bin/ezpz";
  r.attempt_id = "7.1f.1";
  r.attempt = 1;
  r.master_port = 23456;
  r.job_id = "7";
  return r;
}

inline bool has(const Argv& argv, const std::string& word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}

inline bool unset(const Plan& plan, const std::string& name) {
  const auto found = plan.env.find(name);
  return found != plan.env.end() && !found->second;
}

inline std::string set_to(const Plan& plan, const std::string& name) {
  const auto found = plan.env.find(name);
  return found != plan.env.end() && found->second ? *found->second : "(not set)";
}

// Compares with tests/golden/launch/NAME.txt; EZPZ_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& name, const Result<Plan>& plan) {
  ASSERT_TRUE(plan.ok()) << plan.error().one_line();
  const std::string path = std::string("tests/golden/launch/") + name + ".txt";
  if (std::getenv("EZPZ_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << render(*plan);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(render(*plan), text.str()) << path;
}

}  // namespace ezpz::launch
