// run_info.json: what a run was, beside its metrics. Written by `ezpz launch`, or by any program
// that launches itself; read by whatever makes a number of the metrics public. Readable as C++17.
//
// It tells what was known when it was written: hosts are those that ran, not those that were
// allocated, and a run without an end in it is one whose end nobody lived to write down.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ezpz::bench {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct AttemptInfo {
  int attempt = 0;
  std::string started;  // ISO 8601; empty: unknown; so for all times here
  std::string ended;
  std::vector<std::string> hosts;
  int world_size = 0;   // 0: unknown
  std::string verdict;  // "node_failure"; empty: still running, or never judged
  std::string summary;  // a sentence
  std::string action;   // "swap"
};

struct SwapInfo {
  int attempt = 0;  // after which
  std::string out;
  std::string in;
  std::string provenance;  // what the retirement rests on: "scraped", "probed", ...
};

// What the ranks' collectives said they use.
struct NetworkInfo {
  std::string expected;           // by the machine's table or as required; empty: no expectation
  std::vector<std::string> used;  // empty: no rank told
  bool fallback = false;          // another than expected, on at least one host
  std::string fallback_to;        // "Socket"
};

struct RunInfo {
  std::string written_by;  // "ezpz 0.1.0"
  std::string machine;     // name of its table: "perlmutter"; "generic": nobody knows
  std::string system;      // for people and dashboards: "Perlmutter"; empty: unknown
  std::string scheduler;
  std::string job_id;
  std::string launcher;            // "srun"
  std::vector<std::string> hosts;  // of the last attempt that started
  int world_size = 0;              // ranks of that attempt
  int ranks_per_node = 0;
  int gpus_per_node = 0;  // 0: none, or unknown
  // In use. Nothing when it cannot be told, and why.
  std::optional<int> gpus;
  std::string gpus_unknown;
  NetworkInfo network;
  std::vector<std::string> command;  // secrets masked
  NamedValues config;                // as resolved
  NamedValues versions;
  std::string git_commit;  // of the directory it was started in; "-dirty" behind it
  std::vector<AttemptInfo> attempts;
  std::vector<SwapInfo> swaps;
  std::string started;
  std::string updated;
  std::string ended;
  std::string end;  // the reason, "success" among them; empty: not recorded
};

// GPUs that a launch uses, from what it was given. Only where it follows: one rank on a node of
// several GPUs may own one of them or, under torchrun, all.
std::optional<int> gpus_in_use(int world_size, int nodes, int ranks_per_node, int gpus_per_node,
                               std::string* why_unknown);

std::string to_json_text(const RunInfo&);
// An error for what is not a run_info.json of ours; a part of another shape than ours is left out.
Result<RunInfo> run_info_from_json(std::string_view text, const std::string& where);

// DIR/run_info.json, atomically.
Status write_run_info(const std::string& directory, const RunInfo&);

}  // namespace ezpz::bench
