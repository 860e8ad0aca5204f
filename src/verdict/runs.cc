#include "verdict/runs.h"

#include <algorithm>

namespace ezpz::verdict {
namespace {

bool is_earlier(const Fact& fact, int64_t end) {
  return fact.source == Source::output && fact.line > 0 && fact.line <= end;
}

}  // namespace

int64_t earlier_runs_end(const AttemptRecord& record) {
  int64_t end = record.progress.earlier_runs_end.value_or(0);
  if (record.ending != Ending::exited || !record.exit_known || !record.exit.clean()) return end;
  // A clean end, and steps for a while after a death: whatever died was survived, or tried again.
  end = std::max(end, record.progress.survived_line.value_or(0));
  // Without a step behind it the word that another run began counts only with a clean end: the new
  // run may have died of the old one's trouble before it printed anything.
  for (const Fact& fact : record.facts) {
    const bool requeued = fact.event == Event::limit && fact.reason == "JOB REQUEUE";
    // A requeue that is the last word is how this job ended.
    const bool went_on = &fact != &record.facts.back() || !requeued;
    if ((fact.event == Event::new_run || requeued) && went_on) end = std::max(end, fact.line);
  }
  return end;
}

AttemptRecord last_run_of(AttemptRecord record, int64_t end) {
  const bool placed_anew =
      std::any_of(record.facts.begin(), record.facts.end(), [end](const Fact& fact) {
        return fact.event == Event::placement && !fact.ranks.empty() && !is_earlier(fact, end);
      });
  for (Fact& fact : record.facts) {
    if (!is_earlier(fact, end)) continue;
    if (fact.event == Event::placement && !placed_anew) continue;
    if (is_equipment(fact.event)) continue;
    fact.role = Role::context;
    fact.event = Event::message;
    fact.kind = Kind::unknown;
  }
  return record;
}

}  // namespace ezpz::verdict
