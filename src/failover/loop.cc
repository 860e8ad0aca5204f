#include "failover/loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "failover/record_json.h"
#include "site/scheduler.h"

namespace ezpz::failover {
namespace {

using verdict::Action;
using verdict::Culprit;
using verdict::Decision;
using verdict::Provenance;
using verdict::Verdict;

class FailoverLoop {
 public:
  FailoverLoop(World& world, Allocation& allocation, const LoopSettings& settings)
      : world_(world), allocation_(allocation), settings_(settings) {}

  LoopResult run() {
    publish();
    // Invariant of each turn: active() is who runs next, everything decided so far is recorded.
    for (int attempt = 1;; ++attempt) {
      result_.attempts = attempt;
      const AttemptOutcome outcome = world_.run_attempt(input_for(attempt));
      if (!outcome.started) {
        return stop(world_.stop_requested() ? "cancelled" : "launch_failed", outcome.trouble);
      }
      observe_costs(outcome);
      result_.last_exit = outcome.record.exit;
      result_.ended_by_guard = outcome.record.ending == verdict::Ending::guard;
      world_.record("attempt_end", to_json(outcome.record));

      const Verdict verdict = judge(outcome.record);
      const Decision decision = choose(outcome.record, verdict);
      history_.push_back(verdict::remember(outcome.record, verdict, decision));
      apply_hindsight(decision);
      if (decision.action == Action::stop) {
        note_losses(decision, attempt, verdict.kind);
        return stop(decision.stop_reason, decision.why);
      }

      if (world_.stop_requested()) return stop("cancelled", "a stop was asked for");
      if (!replace_all(decision.swap_out, attempt, verdict.kind)) {
        return stop("exhausted", "no usable spare is left");
      }
      if (!clear_old_attempt(attempt, verdict.kind)) {
        return stop("exhausted", "a host could not be cleared and no usable spare is left");
      }
      if (decision.backoff_s > 0) world_.pause(decision.backoff_s);
      if (world_.stop_requested()) return stop("cancelled", "a stop was asked for");
    }
  }

 private:
  AttemptInput input_for(int attempt) const {
    AttemptInput input;
    input.attempt = attempt;
    input.active = allocation_.active();
    input.excluded = allocation_.retired();
    input.hostfile_text = allocation_.active_hostfile_text();
    input.overlap = overlap_;
    return input;
  }

  // What a relaunch costs: the time to its first step and the work since the last checkpoint.
  void observe_costs(const AttemptOutcome& outcome) {
    if (outcome.first_step_after_s > 0) restart_s_ = outcome.first_step_after_s;
    if (outcome.checkpoint_interval_s > 0) checkpoint_s_ = outcome.checkpoint_interval_s;
  }

  Verdict judge(const verdict::AttemptRecord& record) {
    Verdict verdict = verdict::attribute(
        record, [this](std::string_view spelled) { return world_.node_key(spelled); },
        [this](std::string_view pattern) { return world_.remedy_of(pattern); });
    result_.last_kind = verdict.kind;
    Json context = to_json(verdict, record.facts);
    context["attempt"] = record.attempt;
    world_.record("verdict", context);
    world_.say(fmt::format("attempt {}: {}", record.attempt, verdict.summary));
    for (const Culprit& culprit : verdict.culprits) {
      if (culprit.fact < record.facts.size()) {
        const Fact& fact = record.facts[culprit.fact];
        world_.say(fmt::format("  evidence, line {}: {}", fact.line, fact.text));
      }
    }
    if (!verdict.remedy.empty()) world_.say("  try: " + verdict.remedy);
    if (verdict.retired_host_named) {
      world_.say("  a host retired earlier was named again: are ranks running where they should?");
    }
    return verdict;
  }

  verdict::Budget budget(Kind kind) {
    verdict::Budget budget;
    budget.retries_left = settings_.max_relaunches - static_cast<int>(history_.size());
    budget.spares_left = static_cast<int>(allocation_.spare().size());
    // After a success nobody needs to know, and the question may take seconds.
    if (kind != Kind::success && !world_.stop_requested()) {
      budget.time_left_s = world_.time_left_s();
    }
    budget.restart_cost_s = restart_s_ > 0 ? restart_s_ : settings_.default_restart_s;
    budget.checkpoint_interval_s = checkpoint_s_;
    if (settings_.min_active > 0) {
      budget.may_shrink_by = static_cast<int>(allocation_.active().size()) - settings_.min_active;
    }
    const double needed_s = budget.restart_cost_s + budget.checkpoint_interval_s;
    const bool too_late = !budget.time_left_s || *budget.time_left_s < needed_s;
    budget.relaunch_forbidden = world_.stop_requested() || (world_.end_announced() && too_late);
    budget.blind = settings_.blind;
    return budget;
  }

  Decision choose(const verdict::AttemptRecord& record, const Verdict& verdict) {
    const verdict::Budget limits = budget(verdict.kind);
    Decision decision = verdict::decide(record, verdict, history_, limits);
    note_decision(record.attempt, decision, limits);
    if (decision.action != Action::probe) return decision;

    std::vector<Node> hosts = allocation_.active();
    const std::vector<Node> spares = allocation_.spare();
    hosts.insert(hosts.end(), spares.begin(), spares.end());
    world_.say(fmt::format("  probing {} hosts", hosts.size()));
    const verdict::ProbeOutcome probe = world_.probe(hosts);
    Json context = to_json(probe);
    context["attempt"] = record.attempt;
    world_.record("probe", context);
    if (!probe.ran) world_.say("  probe unavailable: " + probe.trouble);
    retire_failed_spares(probe, record.attempt, verdict.kind);
    decision = verdict::decide_after_probe(record, verdict, probe, history_, budget(verdict.kind));
    note_decision(record.attempt, decision, limits);
    return decision;
  }

  void note_decision(int attempt, const Decision& decision, const verdict::Budget& limits) {
    Json context = to_json(decision);
    context["attempt"] = attempt;
    context["retries_left"] = limits.retries_left;
    context["spares_left"] = limits.spares_left;
    context["time_left_s"] = limits.time_left_s ? Json(*limits.time_left_s) : Json(nullptr);
    context["restart_cost_s"] = limits.restart_cost_s;
    context["checkpoint_interval_s"] = limits.checkpoint_interval_s;
    world_.record("decision", context);
    // A stop is told when it happens, a swap with who takes the place.
    if (decision.action == Action::retry_same || decision.action == Action::probe) {
      world_.say(fmt::format("  {}: {}", to_string(decision.action), decision.why));
    }
  }

  void apply_hindsight(const Decision& decision) {
    if (decision.mark_earlier_doubtful) {
      allocation_.mark_doubtful(decision.doubtful_host);
      world_.record("doubtful", {{"host", decision.doubtful_host}, {"why", decision.why}});
      publish();
    }
    for (const std::string& key : decision.exonerated) {
      allocation_.mark_innocent(key);
      world_.record("exonerated", {{"host", key}});
      world_.say("  " + key + " was swapped on a guess and the fault came without it: innocent");
    }
  }

  // A host convicted when nothing can be relaunched is written down all the same.
  void note_losses(const Decision& decision, int attempt, Kind kind) {
    for (const Culprit& culprit : decision.swap_out) {
      allocation_.note_loss(culprit.host, culprit.provenance, attempt, kind);
      world_.record("lost", {{"host", culprit.host},
                             {"provenance", std::string(to_string(culprit.provenance))},
                             {"attempt", attempt}});
    }
    if (!decision.swap_out.empty()) publish();
  }

  void retire_failed_spares(const verdict::ProbeOutcome& probe, int attempt, Kind kind) {
    for (const Node& spare : allocation_.spare()) {
      if (std::find(probe.failed.begin(), probe.failed.end(), spare.key) != probe.failed.end()) {
        retire_spare(spare, Provenance::probed, "failed the probe", attempt, kind);
      }
    }
  }

  void retire_spare(const Node& spare, Provenance provenance, const std::string& why, int attempt,
                    Kind kind) {
    world_.record("spare_skipped", {{"host", spare.spelled},
                                    {"provenance", std::string(to_string(provenance))},
                                    {"why", why}});
    world_.say(fmt::format("  spare {} skipped: {}", spare.spelled, why));
    allocation_.retire_spare(spare.key, provenance, attempt, kind);
    publish();
  }

  // Takes out of the spares what the scheduler says cannot be used. An unanswered question takes
  // out nobody.
  void check_spares(int attempt, Kind kind) {
    if (spares_checked_attempt_ == attempt || allocation_.spare().empty()) return;
    spares_checked_attempt_ = attempt;
    const NodeStates known = world_.node_states(allocation_.spare());
    if (!known.trouble.empty())
      world_.record("unknown", {{"what", "spare states"}, {"why", known.trouble}});
    for (const Node& spare : allocation_.spare()) {
      const auto state = known.states.find(spare.key);
      if (state == known.states.end()) continue;
      if (!site::is_usable(state->second) || site::is_draining(state->second)) {
        retire_spare(spare, Provenance::scheduler, "the scheduler says " + state->second, attempt,
                     kind);
      }
    }
  }

  bool replace_all(const std::vector<Culprit>& out, int attempt, Kind kind) {
    fresh_.clear();
    for (const Culprit& culprit : out) {
      if (!replace(culprit, attempt, kind)) return false;
    }
    return true;
  }

  bool replace(const Culprit& culprit, int attempt, Kind kind) {
    check_spares(attempt, kind);
    if (allocation_.spare().empty()) return shrink(culprit, attempt, kind);
    const Result<Node> fresh = allocation_.swap(culprit.host, culprit.provenance, attempt, kind);
    if (!fresh) return false;
    ++result_.swaps;
    fresh_.push_back(*fresh);
    world_.record("swap", {{"out", culprit.host},
                           {"in", fresh->spelled},
                           {"provenance", std::string(to_string(culprit.provenance))},
                           {"attempt", attempt}});
    world_.say(fmt::format("  swap: {} out ({}), {} in", culprit.host,
                           to_string(culprit.provenance), fresh->spelled));
    publish();
    return true;
  }

  bool shrink(const Culprit& culprit, int attempt, Kind kind) {
    const auto active = static_cast<int>(allocation_.active().size());
    if (settings_.min_active <= 0 || active - 1 < settings_.min_active) return false;
    if (culprit.provenance == Provenance::blind) return false;  // never smaller on a guess
    allocation_.shrink(culprit.host, culprit.provenance, attempt, kind);
    world_.record("shrink", {{"out", culprit.host}, {"active", active - 1}});
    world_.say(fmt::format("  no spare left: going on with {} hosts, without {}", active - 1,
                           culprit.host));
    publish();
    return true;
  }

  // The fence: no kept host starts the next attempt while a process of this one lives on it.
  bool clear_old_attempt(int attempt, Kind kind) {
    std::vector<Node> kept;
    for (const Node& host : allocation_.active()) {
      if (std::find(fresh_.begin(), fresh_.end(), host) == fresh_.end()) kept.push_back(host);
    }
    const FenceOutcome fence = world_.fence(kept, fresh_);
    if (world_.stop_requested()) return true;  // a fence cut short convicts nobody
    overlap_ = fence.stale_step;
    world_.record("fence", {{"attempt", attempt},
                            {"kept", spellings_json(kept)},
                            {"ran", fence.ran},
                            {"uncleared", fence.uncleared},
                            {"stale_step", fence.stale_step},
                            {"trouble", fence.trouble}});
    if (!fence.ran && !kept.empty())
      world_.say("  could not check the kept hosts: " + fence.trouble);
    for (const auto& [key, why] : fence.uncleared) {
      world_.say(fmt::format("  {} cannot be kept: {}", key, why));
      const auto provenance = fence.provenance.find(key);
      Culprit culprit;
      culprit.host = key;
      culprit.provenance =
          provenance != fence.provenance.end() ? provenance->second : Provenance::unkillable;
      if (!replace(culprit, attempt, kind)) return false;
    }
    return true;
  }

  void publish() { world_.publish_bad_nodes(allocation_.bad_nodes_text()); }

  LoopResult stop(const std::string& reason, const std::string& why) {
    result_.stop_reason = reason;
    if (!why.empty() && reason != "success") world_.say("  stop: " + why);
    world_.record("stop", {{"reason", reason},
                           {"why", why},
                           {"attempts", result_.attempts},
                           {"swaps", result_.swaps}});
    return result_;
  }

  World& world_;
  Allocation& allocation_;
  const LoopSettings& settings_;
  LoopResult result_;
  std::vector<verdict::PastAttempt> history_;
  std::vector<Node> fresh_;  // joined since the last attempt
  bool overlap_ = false;
  int spares_checked_attempt_ = 0;
  double restart_s_ = 0;
  double checkpoint_s_ = 0;
};

}  // namespace

LoopResult run_failover(World& world, Allocation& allocation, const LoopSettings& settings) {
  return FailoverLoop(world, allocation, settings).run();
}

}  // namespace ezpz::failover
