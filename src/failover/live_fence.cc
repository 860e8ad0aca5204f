// Looking at nodes between attempts: the probe, and the fence before a relaunch.
#include <fmt/core.h>
#include <signal.h>

#include <algorithm>

#include "base/text.h"
#include "failover/live_world.h"

namespace ezpz::failover {
namespace {

constexpr double kShortWait_s = 1;  // for a survivor to be gone after SIGKILL
constexpr double kMpiStart_s = 6;   // for an mpiexec to reach its hosts, by ssh perhaps
constexpr double kFenceWait_s = 5;  // the same, when it is not gone by then
constexpr double kStaleStepCheck_s = 0.4;
constexpr int kStaleStepChecks = 3;

}  // namespace

probe::ProbeSpec LiveWorld::probe_spec(const std::vector<Node>& hosts) const {
  probe::ProbeSpec spec;
  spec.reach = settings_.launcher->name == "srun"    ? probe::Reach::srun
               : settings_.launcher->name == "local" ? probe::Reach::local
                                                     : probe::Reach::launcher;
  spec.beside = [this](const std::vector<Node>& on, const Argv& command) {
    return launch::beside_argv(settings_.launcher->plan, settings_.request, on, command);
  };
  spec.hosts = hosts;
  spec.self_path = settings_.request.self_path;
  spec.give_up = [this, stops_before = stops_] { return stops_ != stops_before; };
  return spec;
}

verdict::ProbeOutcome LiveWorld::probe(const std::vector<Node>& hosts) {
  const probe::ProbeResult result = run_probe(loop_, probe_spec(hosts), settings_.naming);
  verdict::ProbeOutcome outcome;
  outcome.trouble = result.trouble;
  // Nobody answered at all: the launcher is the trouble, not every host at once.
  outcome.ran = result.ran && !result.answered.empty() && !result.given_up;
  if (!outcome.ran && !result.refused.empty()) outcome.trouble = result.refused.begin()->second;
  if (!outcome.ran) return outcome;
  for (const auto& [host, report] : result.answered) {
    if (!report.healthy()) outcome.failed.push_back(host);
  }
  const NodeStates known = node_states(hosts);
  const auto scheduler_agrees = [&](const std::string& host) {
    const auto state = known.states.find(host);
    return state != known.states.end() && !site::is_usable(state->second);
  };
  // Silence is "unknown" until the scheduler says the same: health checks that took a time-out for
  // sickness have drained healthy nodes. A refusal is an answer, and the host alone was refused,
  // twice, while the others were not.
  for (const std::string& host : result.silent) {
    (scheduler_agrees(host) ? outcome.failed : outcome.unknown).push_back(host);
  }
  const bool others_answer = result.answered.size() > result.refused.size();
  for (const auto& [host, why] : result.refused) {
    const bool sick = others_answer || scheduler_agrees(host);
    (sick ? outcome.failed : outcome.unknown).push_back(host);
  }
  return outcome;
}

FenceOutcome LiveWorld::fence(const std::vector<Node>& kept, const std::vector<Node>& fresh) {
  FenceOutcome outcome;
  if (!last_step_id_.empty() && settings_.launcher->name == "srun") {
    // The old step may stay on its dead node for ever; it is asked to go, not awaited.
    for (const Argv& argv :
         {launch::signal_argv(SIGKILL, last_step_id_), launch::cancel_argv(last_step_id_)}) {
      start_helper(
          loop_, argv, site::query_timeout_s, [](const HelperResult&) {}, HelperKind::action);
    }
  }
  std::vector<Node> hosts = kept;
  hosts.insert(hosts.end(), fresh.begin(), fresh.end());
  probe::ProbeSpec spec = probe_spec(hosts);
  spec.check.attempt_id = run_id();
  spec.check.clear = true;
  // Plain first and short: nearly always it answers at once, and after a lost node it frees the
  // cores Slurm still counts as taken on the survivors. What it leaves open is looked at with more
  // patience, past whatever holds the hosts.
  spec.overlap = false;
  spec.check.wait_s = kShortWait_s;
  const double start_s = spec.reach == probe::Reach::launcher ? kMpiStart_s : 1.5;
  spec.together_s = spec.alone_s = kShortWait_s + start_s;
  spec.alone_tries = spec.reach != probe::Reach::srun;
  probe::ProbeResult result = run_probe(loop_, spec, settings_.naming);
  const bool waited = result.answered.size() < hosts.size();
  spec.hosts.clear();
  for (const Node& host : hosts) {
    const auto answered = result.answered.find(host.key);
    if (answered == result.answered.end() || !answered->second.healthy())
      spec.hosts.push_back(host);
  }
  if (!spec.hosts.empty() && !result.given_up) {
    spec.overlap = true;
    spec.alone_tries = true;
    spec.check.wait_s = kFenceWait_s;
    spec.together_s = spec.alone_s = kFenceWait_s + 8;
    probe::ProbeResult second = run_probe(loop_, spec, settings_.naming);
    for (auto& [host, report] : second.answered) result.answered[host] = std::move(report);
    result.refused = std::move(second.refused);
    result.silent = std::move(second.silent);
    result.ran = second.ran || result.ran;
    result.given_up = second.given_up;
    result.trouble = second.trouble;
  }
  outcome.trouble = result.trouble;
  if (result.given_up) return outcome;  // nothing was learnt, and nothing will be started
  outcome.ran = result.ran && !result.answered.empty();
  // Nobody answered: the launcher is the trouble, and what it said is the reason.
  if (!outcome.ran && !result.refused.empty()) outcome.trouble = result.refused.begin()->second;
  std::vector<Node> unanswered;
  if (outcome.ran) {
    for (const Node& host : hosts) {
      const auto answered = result.answered.find(host.key);
      if (answered == result.answered.end()) {
        const auto refused = result.refused.find(host.key);
        outcome.uncleared[host.key] = refused != result.refused.end()
                                          ? "a check could not be started on it: " + refused->second
                                          : "it did not answer while others did";
        outcome.provenance[host.key] = verdict::Provenance::unkillable;
        unanswered.push_back(host);
      } else if (!answered->second.survivors.empty()) {
        outcome.uncleared[host.key] = "processes of the last attempt cannot be ended: pid " +
                                      ezpz::ranges(answered->second.survivors);
        outcome.provenance[host.key] = verdict::Provenance::unkillable;
      } else if (!answered->second.tmp_ok) {
        outcome.uncleared[host.key] = "its tmp cannot be written";
        outcome.provenance[host.key] = verdict::Provenance::probed;
      }
    }
  }
  if (!unanswered.empty()) {
    for (const auto& [host, state] : node_states(unanswered).states) {
      if (!site::is_usable(state)) outcome.provenance[host] = verdict::Provenance::scheduler;
    }
  }
  std::vector<Node> clean;
  for (const Node& host : kept) {
    if (!outcome.uncleared.contains(host.key)) clean.push_back(host);
  }
  const bool srun = spec.reach == probe::Reach::srun;
  outcome.stale_step = srun && (waited || stale_step_on(clean, &outcome.trouble));
  return outcome;
}

// Does an old step of ours still hold one of these hosts? A step that is only just ending gets a
// moment.
bool LiveWorld::stale_step_on(const std::vector<Node>& hosts, std::string* trouble) {
  const site::Scheduler& scheduler = site::scheduler(settings_.scheduler);
  if (scheduler.steps_query == nullptr || last_step_id_.empty() || hosts.empty()) return false;
  for (int i = 0; i < kStaleStepChecks; ++i) {
    if (i > 0) pause(kStaleStepCheck_s);
    const HelperResult result = ask(scheduler.steps_query(settings_.job_id));
    if (!result.usable()) {
      *trouble = result.trouble;
      return true;  // unknown: overlapping does no harm where there is nothing to overlap
    }
    bool held = false;
    for (const site::Step& step : scheduler.read_steps(result.out)) {
      if (step.id != last_step_id_) continue;
      for (const std::string& host : step.hosts) {
        held = held || std::any_of(hosts.begin(), hosts.end(),
                                   [&](const Node& kept) { return kept.key == node_key(host); });
      }
    }
    if (!held) return false;
  }
  return true;
}

}  // namespace ezpz::failover
