// What the toy trainer was asked to do: the flags, and who it is (the launcher's environment).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace toy {

enum class FaultKind { none, exit, exit_before_first_step, segv, kill_self, hang };

// Acts when every given filter agrees; a filter that was not given agrees with everybody.
struct Fault {
  FaultKind kind = FaultKind::none;
  std::vector<int64_t> at_step;  // by attempt; the last one serves all later attempts
  int exit_code = 1;
  std::vector<int> ranks;
  std::optional<int> attempt;
  std::string host;
};

struct Options {
  int64_t steps = 20;
  int64_t step_ms = 50;
  int64_t checkpoint_every = 5;
  std::string checkpoint_dir;  // empty: none is written
  std::string receipts_dir;    // empty: none are written
  std::string metrics_dir;     // empty: none are written
  double rendezvous_s = 30;
  bool exit_on_peer_loss = false;  // default: hang, as an all-reduce without a watchdog does
  bool ignore_term = false;
  bool save_on_term = true;
  bool print_junk = false;
  int64_t burst_mb = 0;
  Fault fault;
  std::string write_file;  // one rank writes to it in every step
  int write_rank = 0;
  std::optional<int> write_attempt;
};

// The launcher's variables. Without RANK this is a world of one, so that an unbroken reference run
// needs no launcher.
struct Identity {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int node_rank = 0;
  int attempt = 1;
  std::string host;  // EZPZ_NODE
  std::string hostname;
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
};

// Prints the reason and exits 2 on bad usage; prints the help and exits 0 for --help.
Options parse_options(int argc, char** argv);
Identity identity_from_environment();

}  // namespace toy
