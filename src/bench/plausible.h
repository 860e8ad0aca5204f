// Results of a table's cells, and which of them nobody should believe. Pure.
//
// Each rule has caught, or would have caught, a number that had been published: nothing errors when
// a benchmark is measured wrongly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/amsc.h"

namespace ezpz::bench {

struct RowFlag {
  std::string rule;    // "mfu", "slower", "efficiency", "network", "tokens"
  std::string reason;  // a phrase
};

struct BenchRow {
  // What was asked for.
  std::string label;
  std::string config;
  std::string baseline;
  std::string series;        // alike but for their nodes
  std::string network;       // that was required; empty: as the machine's table expects
  double tokens_a_rank = 0;  // of a step, before tensor parallelism; 0: not known
  int tp = 1;
  // How it went.
  std::string state;
  std::string why;  // for what is not done
  int exit_code = -1;
  int attempts = 0;
  // What was measured; nothing unless done.
  std::optional<int> nodes;
  std::optional<int> gpus;
  std::optional<int> ranks;
  int64_t steps = 0;
  Speeds speeds;
  std::vector<std::string> networks_used;
  bool network_fallback = false;
  std::string network_expected;
  // What follows.
  std::optional<double> efficiency_percent;  // of its baseline's speed per GPU
  std::vector<RowFlag> flags;

  [[nodiscard]] bool measured() const { return state == "done" && speeds.tokens_per_s.has_value(); }
};

// Fills efficiency and flags of every row, anew.
void judge(std::vector<BenchRow>* rows);

// Tokens a second of a GPU, else of a rank, else of a node.
std::optional<double> unit_speed(const BenchRow&);

}  // namespace ezpz::bench
