// From a verdict to the next action. decide() asks, in this order, and the first answer holds:
//
//   1. user stop            ezpz was asked to stop, or a relaunch is forbidden: stop; an end that
//   has
//                           a word of its own (walltime, preempted) keeps it
//   2. job over             the scheduler has ended the job: stop
//   3. ending               success, walltime, cancelled, preempted: stop
//   4. same seat            the same rank positions died on another host near the same step: stop,
//                           and the earlier retirement is doubtful
//   5. conviction           hosts are convicted: swap them at once, or stop `exhausted`
//   6. stuck at step        the same failure at the same step, no progress, nobody convicted: stop
//   7. stuck pre-training   a program error in two attempts on end that never came to a step: stop
//   8. too many             kMaxWithoutProgress attempts on end that moved nothing: stop
//   9. suspect              one host alone differs from its peers, or an environment fault comes in
//   a
//                           job that has trained before: probe before the table is asked
//  10. the table            policy_table.h
//
// Whatever of this is not a stop must then be affordable: relaunches left, and time left (only when
// the scheduler told it) for a restart and one checkpoint interval.
//
// decide_after_probe(): hosts that failed the probe are swapped; a host that only timed out is
// unknown, not sick; a probe that every active host failed speaks against the probe. When nothing
// failed, or the probe could not run, the first time means retry_same; again, without progress, a
// blind swap if --blind allows it. Two attempts that never came to a step and convicted nobody stop
// `stuck_pre_training` instead: a guess is not spent on a job that has never trained.
#include "verdict/policy.h"

#include <algorithm>
#include <array>

#include "verdict/node_state.h"
#include "verdict/past.h"
#include "verdict/policy_table.h"

namespace ezpz::verdict {
namespace {

struct Situation {
  const AttemptRecord& record;
  const Verdict& verdict;
  const std::vector<PastAttempt>& history;
  const Budget& budget;
  const Row& row;
  bool progress;  // this attempt got further than any before

  Situation(const AttemptRecord& r, const Verdict& v, const std::vector<PastAttempt>& h,
            const Budget& b)
      : record(r),
        verdict(v),
        history(h),
        budget(b),
        row(policy_row(v.kind)),
        progress(made_progress(r.progress, h)) {}

  // Attempts on end, this one included, that belong to the family and made no progress after the
  // first of them.
  [[nodiscard]] int streak() const {
    int length = 1;
    bool moved = progress;
    for (size_t i = history.size(); i > 0 && !moved; --i) {
      const PastAttempt& past = history[i - 1];
      if (policy_row(past.verdict.kind).family != row.family || convicted_on_evidence(past)) break;
      ++length;
      moved = past_made_progress(history, i - 1);
    }
    return length;
  }

  // Attempts on end, this one included, that made no progress and convicted nobody.
  [[nodiscard]] int without_progress() const {
    if (progress || !verdict.culprits.empty()) return 0;
    int length = 1;
    for (size_t i = history.size(); i > 0; --i) {
      if (past_made_progress(history, i - 1) || convicted_on_evidence(history[i - 1])) break;
      ++length;
    }
    return length;
  }
};

Decision stop(std::string_view reason, std::string why) {
  Decision decision;
  decision.action = Action::stop;
  decision.stop_reason = std::string(reason);
  decision.why = std::move(why);
  return decision;
}

Decision retry_same(double backoff_s, std::string why) {
  Decision decision;
  decision.action = Action::retry_same;
  decision.backoff_s = backoff_s;
  decision.why = std::move(why);
  return decision;
}

Decision probe(std::string why) {
  Decision decision;
  decision.action = Action::probe;
  decision.why = std::move(why);
  return decision;
}

std::string names(const std::vector<Culprit>& culprits) {
  std::string text;
  for (const Culprit& culprit : culprits) text += (text.empty() ? "" : ", ") + culprit.host;
  return text;
}

std::string count(size_t n, std::string_view thing) {
  return std::to_string(n) + " " + std::string(thing) + (n == 1 ? "" : "s");
}

// Swaps while there are spares, and beyond them as far as --min-nodes lets the job shrink.
Decision swap(std::vector<Culprit> culprits, int spares, const Budget& budget, std::string why) {
  const int wanted = static_cast<int>(culprits.size());
  if (wanted > std::max(spares, 0) + std::max(budget.may_shrink_by, 0)) {
    Decision decision =
        stop("exhausted", "exhausted: " + names(culprits) + " must go, and " +
                              count(static_cast<size_t>(std::max(spares, 0)), "spare") +
                              (spares == 1 ? " is left" : " are left"));
    decision.swap_out = std::move(culprits);
    return decision;
  }
  Decision decision;
  decision.action = Action::swap;
  decision.swap_out = std::move(culprits);
  decision.why = std::move(why);
  return decision;
}

// ---- the rules over the table, in their order

std::optional<Decision> user_stop(const Situation& now) {
  if (now.record.ending == Ending::user_stop && now.row.family != Family::ending) {
    return stop("cancelled", "ezpz was asked to stop; the attempt itself: " + now.verdict.summary);
  }
  // A clean or stated end keeps its own word.
  if (!now.budget.relaunch_forbidden || now.row.family == Family::ending) return std::nullopt;
  if (now.record.user_asked_stop_by_signal) {
    return stop("walltime_near", "the job was told that its end is near: no relaunch");
  }
  return stop("cancelled", "ezpz was asked to stop: no relaunch");
}

std::optional<Decision> job_over(const Situation& now) {
  const auto& state = now.record.scheduler.job_state;
  if (!state || now.row.family == Family::ending) return std::nullopt;
  const std::optional<Kind> end = end_of_job(*state);
  if (!end) return std::nullopt;
  const Row& row = policy_row(*end);
  return stop(row.family == Family::ending ? row.stop_reason : "job_over",
              "the scheduler has ended the job (" + *state + "): nothing can be started in it");
}

std::optional<Decision> ending(const Situation& now) {
  if (now.row.family != Family::ending) return std::nullopt;
  return stop(now.row.stop_reason, now.verdict.summary);
}

std::string host_of_seats(const Situation& now) {
  if (!now.verdict.culprits.empty()) return now.verdict.culprits.front().host;
  if (now.verdict.dead_ranks.empty()) return {};
  const auto found = now.record.host_of_rank.find(now.verdict.dead_ranks.front());
  return found == now.record.host_of_rank.end() ? std::string() : found->second;
}

std::optional<Decision> same_seat(const Situation& now) {
  const std::string host = host_of_seats(now);
  if (host.empty()) return std::nullopt;
  for (const PastAttempt& past : now.history) {
    if (past.culprit_host.empty() || past.culprit_host == host) continue;
    if (!same_seats(past.dead_ranks, now.verdict.dead_ranks)) continue;
    if (!near_same_step(past.progress, now.record.progress)) continue;
    Decision decision =
        stop("same_seat", "the same ranks died on " + past.culprit_host + " and then on " + host +
                              " near the same step: the program or its data");
    decision.mark_earlier_doubtful = true;
    decision.doubtful_host = past.culprit_host;
    return decision;
  }
  return std::nullopt;
}

std::optional<Decision> conviction(const Situation& now) {
  if (now.verdict.culprits.empty()) return std::nullopt;
  return swap(now.verdict.culprits, now.budget.spares_left, now.budget, now.verdict.summary);
}

std::optional<Decision> stuck_at_step(const Situation& now) {
  if (now.progress) return std::nullopt;
  // A program that dies right after its resume, before a step is printed, stands where it stood. A
  // hang there is no "same step": nothing tells that it came so far.
  const bool program = now.row.family == Family::program;
  const auto step = program ? now.record.progress.reached() : now.record.progress.last_step;
  if (!step) return std::nullopt;
  // A full disk fails at the same checkpoint each time: its row counts the tries by itself.
  if (now.row.family == Family::storage_or_launch) return std::nullopt;
  for (const PastAttempt& past : now.history) {
    if (past.verdict.kind != now.verdict.kind || convicted_on_evidence(past)) continue;
    if (!past.progress.last_step || !near_same_step(past.progress, now.record.progress)) continue;
    return stop("stuck_at_step", std::string(to_string(now.verdict.kind)) + " again at step " +
                                     std::to_string(*step));
  }
  return std::nullopt;
}

// Two attempts on end that never came to a step, and nobody convicted.
bool never_trained_twice(const Situation& now) {
  return now.without_progress() >= 2 && !now.record.progress.last_step &&
         !now.history.back().progress.last_step;
}

Decision stop_pre_training() {
  return stop("stuck_pre_training",
              "two attempts ended before the first step, and no host was convicted");
}

std::optional<Decision> stuck_pre_training(const Situation& now) {
  if (now.row.family != Family::program || !never_trained_twice(now)) return std::nullopt;
  return stop_pre_training();
}

std::optional<Decision> too_many(const Situation& now) {
  const int attempts = now.without_progress();
  if (attempts < kMaxWithoutProgress) return std::nullopt;
  return stop("stuck",
              std::to_string(attempts) + " attempts on end made no progress and convicted no host");
}

std::optional<Decision> suspect(const Situation& now) {
  if (!now.budget.can_probe || now.streak() > 1) return std::nullopt;
  if (!now.verdict.suspects.empty()) {
    return probe(now.verdict.suspects.front() +
                 " alone differs from its peers: " + now.verdict.summary);
  }
  // What worked before does not break on every host at once. A launcher that refuses the hosts, for
  // one, may have lost just one of them.
  const bool trained_before =
      std::any_of(now.history.begin(), now.history.end(),
                  [](const PastAttempt& past) { return past.progress.last_step.has_value(); });
  if (now.row.family != Family::environment || !trained_before) return std::nullopt;
  return probe("this environment worked in an earlier attempt: " + now.verdict.summary);
}

// ---- the table

// Hosts benched by an earlier guess, when the same trouble has come back without them.
std::vector<std::string> exonerated(const Situation& now) {
  std::vector<std::string> innocent;
  if (now.progress || now.history.empty()) return innocent;
  const PastAttempt& past = now.history.back();
  if (policy_row(past.verdict.kind).family != now.row.family) return innocent;
  for (const Culprit& culprit : past.swapped_out) {
    if (culprit.provenance == Provenance::blind) innocent.push_back(culprit.host);
  }
  return innocent;
}

// Not active[0] by habit: each guess takes the next position, starting with the second.
const std::string& guess(const Situation& now) {
  const auto guesses =
      std::count_if(now.history.begin(), now.history.end(), [](const PastAttempt& past) {
        return std::any_of(past.swapped_out.begin(), past.swapped_out.end(),
                           [](const Culprit& c) { return c.provenance == Provenance::blind; });
      });
  const auto position = static_cast<size_t>(guesses) + 1;
  return now.record.active[position % now.record.active.size()];
}

Decision blind_swap(const Situation& now, int spares) {
  if (never_trained_twice(now)) return stop_pre_training();
  if (now.without_progress() >= 2) {
    return stop("stuck", "two attempts made no progress, the second after all that was allowed");
  }
  if (now.verdict.retired_host_named) {
    return stop("retired_host_named", "the evidence names only a host that was retired earlier");
  }
  if (now.budget.blind == Blind::never) {
    return stop(now.row.stop_reason, "nothing names a host, and --blind never forbids a guess");
  }
  if (now.record.active.empty()) {
    return stop(now.row.stop_reason, "nothing names a host, and the hosts are not known");
  }
  if (spares < 1) {
    return stop("exhausted", "nothing names a host, and no spare is left to try a guess with");
  }
  Culprit culprit;
  culprit.host = guess(now);
  culprit.provenance = Provenance::blind;
  std::string why = "a guess, nothing names a host: " + culprit.host + " is benched, not retired";
  // A guess never shrinks the job.
  Budget without_shrinking = now.budget;
  without_shrinking.may_shrink_by = 0;
  return swap({culprit}, spares, without_shrinking, std::move(why));
}

// What follows when a probe has nothing to say.
Decision nothing_failed(const Situation& now, Step step, const std::string& probed, int spares) {
  if (step == Step::probe) return retry_same(0, probed + ": the same hosts once more");
  return blind_swap(now, spares);
}

Decision ask_probe(const Situation& now, Step step) {
  if (now.budget.blind == Blind::always && !now.verdict.retired_host_named &&
      now.budget.spares_left > 0 && !now.record.active.empty()) {
    return blind_swap(now, now.budget.spares_left);
  }
  if (!now.budget.can_probe) {
    return nothing_failed(now, step, "probe unavailable", now.budget.spares_left);
  }
  return probe("no host is convicted: " + now.verdict.summary);
}

Decision retry_n_times(const Situation& now) {
  const auto failures = static_cast<size_t>(now.streak());
  const auto pauses = backoffs_s();
  if (failures > pauses.size()) {
    return stop(now.row.stop_reason, now.verdict.summary + ", after " +
                                         count(pauses.size(), "relaunch") + "es without progress");
  }
  return retry_same(pauses[failures - 1], "relaunch " + std::to_string(failures) + " of " +
                                              std::to_string(pauses.size()) + ": " +
                                              now.verdict.summary);
}

Decision retry_if_moved(const Situation& now) {
  if (now.progress) return retry_same(0, "it made progress: the same hosts once more");
  // A program that fails before its first step gets one more chance: a start can be unlucky. Not
  // when its last attempt was its own failure too.
  const bool failed_before =
      !now.history.empty() && policy_row(now.history.back().verdict.kind).family == now.row.family;
  if (!now.record.progress.last_step && !failed_before) {
    return retry_same(0, "it failed before its first step: one more try");
  }
  return stop(now.row.stop_reason, "no progress beyond earlier attempts: " + now.verdict.summary);
}

Decision by_table(const Situation& now) {
  const Step step = now.streak() > 1 ? now.row.again : now.row.first;
  switch (step) {
    case Step::stop:
      break;
    case Step::retry:
      return retry_same(kRetryPause_s, "nothing is known against any host: once more");
    case Step::retry_n_times:
      return retry_n_times(now);
    case Step::retry_if_moved:
      return retry_if_moved(now);
    case Step::probe:
    case Step::probe_or_blind:
      return ask_probe(now, step);
  }
  std::string why = now.verdict.summary;
  if (!now.verdict.remedy.empty()) why += "; " + now.verdict.remedy;
  return stop(now.row.stop_reason, std::move(why));
}

// ---- what every relaunch must pay for

Decision affordable(const Situation& now, Decision decision) {
  if (decision.action == Action::stop) return decision;
  // Who is convicted stays so, though nobody takes his place.
  const auto stop_keeping = [&](std::string_view reason, std::string why) {
    Decision kept = stop(reason, std::move(why));
    if (!now.verdict.culprits.empty()) kept.swap_out = decision.swap_out;
    return kept;
  };
  const Budget& budget = now.budget;
  if (budget.retries_left <= 0) {
    return stop_keeping("max_retries", "no relaunch is left; it would have been " +
                                           std::string(to_string(decision.action)) + ": " +
                                           decision.why);
  }
  const double needed_s = budget.restart_cost_s + budget.checkpoint_interval_s;
  if (budget.time_left_s && *budget.time_left_s < needed_s + decision.backoff_s) {
    return stop_keeping("walltime_near",
                        std::to_string(static_cast<long>(*budget.time_left_s)) +
                            " s are left, and a restart with one checkpoint interval "
                            "takes " +
                            std::to_string(static_cast<long>(needed_s)) + " s");
  }
  return decision;
}

Decision finish(const Situation& now, Decision decision) {
  decision = affordable(now, std::move(decision));
  decision.exonerated = exonerated(now);
  return decision;
}

using OverTable = std::optional<Decision> (*)(const Situation&);
constexpr std::array<OverTable, 9> kOverTable{
    user_stop,     job_over,           ending,   same_seat, conviction,
    stuck_at_step, stuck_pre_training, too_many, suspect,
};

// Hosts the probe convicts: active, and not all of them.
std::vector<Culprit> convicted_by(const ProbeOutcome& outcome, const AttemptRecord& record) {
  std::vector<Culprit> culprits;
  for (const std::string& host : record.active) {
    if (std::find(outcome.failed.begin(), outcome.failed.end(), host) == outcome.failed.end()) {
      continue;
    }
    Culprit culprit;
    culprit.host = host;
    culprit.provenance = Provenance::probed;
    for (const auto& [rank, name] : record.host_of_rank) {
      if (name == host) culprit.ranks.push_back(rank);
    }
    culprits.push_back(std::move(culprit));
  }
  if (culprits.size() > 1 && culprits.size() == record.active.size()) culprits.clear();
  return culprits;
}

std::string probe_in_words(const ProbeOutcome& outcome, const AttemptRecord& record) {
  if (!outcome.ran) {
    return "probe unavailable" + (outcome.trouble.empty() ? "" : " (" + outcome.trouble + ")");
  }
  const bool failed_active =
      std::any_of(outcome.failed.begin(), outcome.failed.end(), [&](const std::string& host) {
        return std::find(record.active.begin(), record.active.end(), host) != record.active.end();
      });
  if (failed_active) return "every active host failed the probe, which speaks against the probe";
  if (!outcome.unknown.empty()) {
    return "no host failed the probe, " + count(outcome.unknown.size(), "host") +
           " did not answer in time";
  }
  return "no host failed the probe";
}

}  // namespace

Decision decide(const AttemptRecord& record, const Verdict& verdict,
                const std::vector<PastAttempt>& history, const Budget& budget) {
  const Situation now(record, verdict, history, budget);
  for (const OverTable rule : kOverTable) {
    if (std::optional<Decision> decision = rule(now)) return finish(now, std::move(*decision));
  }
  return finish(now, by_table(now));
}

Decision decide_after_probe(const AttemptRecord& record, const Verdict& verdict,
                            const ProbeOutcome& outcome, const std::vector<PastAttempt>& history,
                            const Budget& budget) {
  const Situation now(record, verdict, history, budget);
  std::vector<Culprit> culprits;
  int spares = budget.spares_left;
  if (outcome.ran) {
    culprits = convicted_by(outcome, record);
    for (const std::string& host : outcome.failed) {
      const auto& active = record.active;
      if (std::find(active.begin(), active.end(), host) == active.end()) --spares;
    }
  }
  if (!culprits.empty()) {
    std::string why = names(culprits) + " failed the probe; the attempt: " + verdict.summary;
    return finish(now, swap(std::move(culprits), spares, budget, std::move(why)));
  }
  const Step step = now.streak() > 1 ? now.row.again : now.row.first;
  const std::string probed = probe_in_words(outcome, record);
  if (step == Step::probe || step == Step::probe_or_blind) {
    return finish(now, nothing_failed(now, step, probed, spares));
  }
  // The probe was for a suspect: the table decides as if there had been none.
  Decision decision = by_table(now);
  decision.why = probed + "; " + decision.why;
  return finish(now, std::move(decision));
}

PastAttempt remember(const AttemptRecord& record, const Verdict& verdict,
                     const Decision& decision) {
  PastAttempt past;
  past.verdict = verdict;
  past.action = decision.action;
  past.progress = record.progress;
  past.dead_ranks = verdict.dead_ranks;
  past.swapped_out = decision.swap_out;
  if (!verdict.culprits.empty()) {
    past.culprit_host = verdict.culprits.front().host;
  } else if (!decision.swap_out.empty() &&
             decision.swap_out.front().provenance != Provenance::blind) {
    past.culprit_host = decision.swap_out.front().host;
  }
  return past;
}

}  // namespace ezpz::verdict
