// The seam between the failover loop and everything outside it. The loop is tested against a world
// of tables; live_world.h is the real one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/node.h"
#include "verdict/attempt.h"
#include "verdict/policy.h"
#include "verdict/verdict.h"

namespace ezpz::failover {

struct AttemptInput {
  int attempt = 1;
  std::vector<Node> active;    // as the hostfile lists them
  std::vector<Node> excluded;  // retired: must not run anything
  std::string hostfile_text;   // what active.hostfile must hold before the launch
  bool overlap = false;        // a stale step still holds some of the hosts
};

struct AttemptOutcome {
  bool started = false;
  std::string trouble;  // why not started, one line
  verdict::AttemptRecord record;
  double first_step_after_s = 0;     // from start to the first step; 0: none seen
  double checkpoint_interval_s = 0;  // between the last two checkpoints; 0: unknown
};

struct FenceOutcome {
  std::map<std::string, std::string> uncleared;           // host key -> why it cannot be used again
  std::map<std::string, verdict::Provenance> provenance;  // for the same keys
  bool stale_step = false;  // an old step still holds kept hosts: the next launch must overlap
  bool ran = false;
  std::string trouble;
};

struct NodeStates {
  std::map<std::string, std::string> states;  // host key -> "IDLE", "DOWN*"
  std::string trouble;                        // why they are not known
};

class World {
 public:
  virtual ~World() = default;

  virtual AttemptOutcome run_attempt(const AttemptInput&) = 0;
  virtual NodeStates node_states(const std::vector<Node>&) = 0;
  virtual std::optional<double> time_left_s() = 0;  // asked of the scheduler; unknown stays unknown
  virtual verdict::ProbeOutcome probe(const std::vector<Node>&) = 0;
  // Ends what is left of the attempt on the hosts that are kept. fresh: hosts that join, looked at
  // too: when they answer and a kept one does not, it is the kept one and not the launcher.
  virtual FenceOutcome fence(const std::vector<Node>& kept, const std::vector<Node>& fresh) = 0;
  // Waits, unless a stop is asked for.
  virtual void pause(double seconds) = 0;
  virtual bool stop_requested() = 0;
  // SIGUSR1 or SIGUSR2 came: the job's end is near.
  virtual bool end_announced() = 0;

  virtual void record(std::string_view name, const Json& context) = 0;
  virtual void publish_bad_nodes(const std::string& text) = 0;
  virtual void say(const std::string& line) = 0;
  virtual std::string node_key(std::string_view spelled) = 0;
  virtual std::string remedy_of(std::string_view pattern) = 0;  // the grammar's advice, or empty
};

}  // namespace ezpz::failover
