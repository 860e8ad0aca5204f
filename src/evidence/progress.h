// How far an attempt came: the first and last step it printed and its last checkpoint.
#pragma once

#include <cstdint>
#include <optional>

namespace ezpz::evidence {

struct Progress {
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;
  std::optional<int64_t> last_checkpoint;  // step of the last "saved checkpoint" line
  std::optional<int64_t> resumed_from;     // step a "resumed from" line named
  // From one progress line to the next: the wider gap between the first three different steps
  // (programs print the first step, and then every tenth).
  std::optional<int64_t> interval;
  // A log may hold several runs: a job that was requeued, workers that were restarted, a script's
  // second try. The line that ended the last of the earlier ones, once another was said to begin,
  // or to resume, and made a step.
  std::optional<int64_t> earlier_runs_end;
  // The last sign of an end that was followed by steps for a while, whoever made them.
  std::optional<int64_t> survived_line;

  // Where the program stood when it ended: its last step, or the checkpoint it had resumed from
  // when it died before printing one.
  [[nodiscard]] std::optional<int64_t> reached() const {
    return last_step ? last_step : resumed_from;
  }
};

}  // namespace ezpz::evidence
