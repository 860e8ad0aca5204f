// The policy as a table: for each kind of end, what to do the first time and what to do again.
#pragma once

#include <span>
#include <string_view>

#include "base/fact.h"

namespace ezpz::verdict {

enum class Step {
  stop,            // with the row's reason
  retry,           // the same hosts once more, after the row's pause
  retry_n_times,   // the same hosts, with growing pauses, until the tries are spent
  retry_if_moved,  // the same hosts if this attempt made progress, else stop
  probe,           // check every host; swap what fails, else retry the same hosts
  probe_or_blind,  // check every host; swap what fails, else guess if a guess is allowed
};

// Kinds that are the same trouble when it comes to "again".
enum class Family { ending, program, environment, place, storage_or_launch, mystery };

struct Row {
  Kind kind;
  Family family;
  Step first;
  Step again;  // with no progress in between
  std::string_view stop_reason;
};

// One row per Kind, in the order of the enumeration. A convicted host is swapped before the table
// is asked, so these are the rows for "nobody convicted".
std::span<const Row> policy_table();
const Row& policy_row(Kind);

// Pauses before the first, second and third relaunch of a Step::retry_n_times; no fourth.
std::span<const double> backoffs_s();
// Pause before a Step::retry.
inline constexpr double kRetryPause_s = 5;
// Attempts on end without progress and without a convicted host, whatever their kinds.
inline constexpr int kMaxWithoutProgress = 5;

}  // namespace ezpz::verdict
