// One attempt under way and what is learnt about it. Internal to the live_*.cc files.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "evidence/stream.h"
#include "failover/live_world.h"
#include "supervise/supervisor.h"
#include "verdict/attempt.h"

namespace ezpz::failover {

struct LiveWorld::Attempt {
  std::optional<evidence::Stream> stream;  // once the launcher runs
  std::vector<Fact> before_stream;         // of our own, noted until then: a stop may come early
  supervise::Supervisor* supervisor = nullptr;
  verdict::SchedulerView view;
  std::vector<std::string> hosts;  // spelled
  int questions_open = 0;
  double asked_s = 0;  // monotonic; 0: not yet
  double started_s = monotonic_s();
  double first_step_s = 0;
  double checkpoint_s = 0;
  double checkpoint_interval_s = 0;
  std::optional<int64_t> last_step;
  std::optional<int64_t> checkpoint;
  bool placement_noted = false;
  int number = 1;
  // Which network it uses: told when all hosts have spoken, or a moment after the first has.
  std::vector<Fact> equipment;
  size_t equipment_told = 0;
  std::set<std::string> heard;  // host keys
  bool network_timed = false;
  bool network_settled = false;
  bool network_wrong = false;  // and told
  // Answers that come when the attempt is over must not land in the next one.
  std::shared_ptr<int> alive = std::make_shared<int>(0);
};

}  // namespace ezpz::failover
