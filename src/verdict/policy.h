// The policy table: from a verdict and what happened before to the next action. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/verdict.h"

namespace ezpz::verdict {

enum class Action { stop, retry_same, swap, probe };
std::string_view to_string(Action);
bool parse(std::string_view word, Action* out);

// May a host be swapped out on a guess? "never", "last-resort", "always".
enum class Blind { never, last_resort, always };
std::string_view to_string(Blind);
bool parse(std::string_view word, Blind* out);

// What the policy remembers of an earlier attempt.
struct PastAttempt {
  Verdict verdict;
  Action action = Action::stop;
  evidence::Progress progress;
  std::vector<int> dead_ranks;       // the seats that died first, ascending
  std::string culprit_host;          // first culprit; empty when none
  std::vector<Culprit> swapped_out;  // whom the decision took out, probed and blind ones included
};

struct Budget {
  int retries_left = 0;  // relaunches still allowed (--max-failover-retries)
  int spares_left = 0;
  std::optional<double> time_left_s;  // of the job, from the scheduler; unknown stays unknown
  double restart_cost_s = 0;          // what a relaunch costs before it makes progress
  double checkpoint_interval_s = 0;   // a relaunch must live this long to have been worth it
  int may_shrink_by = 0;              // hosts that may go without a spare (--min-nodes)
  bool relaunch_forbidden = false;    // a user stop, or SIGUSR1/2 with too little time left
  Blind blind = Blind::last_resort;
  bool can_probe = true;
};

struct ProbeOutcome {
  std::vector<std::string> failed;   // host keys that answered wrongly or not at all, corroborated
  std::vector<std::string> unknown;  // timed out alone: unknown, not sick
  bool ran = false;                  // false: "probe unavailable"
  std::string trouble;
};

struct Decision {
  Action action = Action::stop;
  // For swap: whom, and on what provenance. For stop: who would have been swapped.
  std::vector<Culprit> swap_out;
  double backoff_s = 0;                // before the relaunch; 0 when a host was convicted
  std::string stop_reason;             // for stop: the word after "FAILOVER STOP: "
  std::string why;                     // one sentence, for the journal and the person
  bool mark_earlier_doubtful = false;  // the seat rule: the earlier retirement may be unjust
  std::string doubtful_host;           // whose, when mark_earlier_doubtful
  // Hosts benched by a blind swap that the fault came back without: they were innocent.
  std::vector<std::string> exonerated;
  bool new_port = true;
};

// One attempt ended: what now? history holds the earlier attempts, oldest first.
Decision decide(const AttemptRecord&, const Verdict&, const std::vector<PastAttempt>& history,
                const Budget&);
// decide() said probe and the probe has come back.
Decision decide_after_probe(const AttemptRecord&, const Verdict&, const ProbeOutcome&,
                            const std::vector<PastAttempt>& history, const Budget&);

// What decide() will want to know of this attempt once it is an earlier one.
PastAttempt remember(const AttemptRecord&, const Verdict&, const Decision&);

// A step or valid checkpoint beyond every earlier attempt's.
bool made_progress(const evidence::Progress& now, const std::vector<PastAttempt>& history);

}  // namespace ezpz::verdict
