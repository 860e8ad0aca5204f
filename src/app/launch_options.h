// What the user asked `ezpz launch` for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/process.h"
#include "base/result.h"

namespace ezpz::app {

struct LaunchOptions {
  // what and where
  std::optional<long> ranks;
  std::optional<long> ranks_per_node;
  std::optional<long> hosts;
  std::optional<long> gpus_per_node;
  std::string hostfile;
  std::vector<std::string> exclude;
  std::string launcher = "auto";
  std::string machine;
  std::string machines_dir;
  bool no_rank_env = false;
  EnvChanges env;
  std::vector<std::string> inherit;  // --env NAME
  std::string cpu_bind;
  bool dry_run = false;
  bool as_json = false;

  // watching
  double idle_timeout_s = -1;        // -1: not given
  double first_step_timeout_s = -1;  // -1: not given
  double grace_s = 30;
  std::optional<std::string> require_net;

  // failover
  bool auto_retry = false;
  std::string spare_nodes = "auto";
  std::optional<long> max_failover_retries;
  std::optional<long> retries;
  std::string blind = "last-resort";
  std::optional<long> min_nodes;
  std::optional<std::string> log_dir;
  std::string patterns_dir;
  bool quiet = false;

  Argv launcher_flags;
  Argv command;
};

// The table writes into options, which must outlive it.
FlagTable launch_flags(LaunchOptions& options);

// Flags, then "[-- launcher flags] -- CMD" or the command itself. Contradictions among flags are
// errors here; what depends on the site is checked by the launch.
Result<LaunchOptions> parse_launch_options(const std::vector<std::string>& words);

}  // namespace ezpz::app
