// Who ended the attempt, and is a host to blame? The rules, in the order they are asked; the first
// that applies gives the verdict.
//
//  1. A lost node. `Node failure on X`, an agent's, a probe's or the scheduler's word that an
//  active
//     host is gone beats everything, whatever the exit code (0 too) and whatever else was printed:
//     after a node loss it is the survivors that are printed `Killed`. Several hosts may be lost at
//     once (a blade, a switch), and all are convicted. Where it is said that a node was lost and
//     not which, the one host that somebody could not reach is it. Nodes that never came up,
//     several of one allocation, are the provisioning's fault and nobody's (they are asked for
//     first). Node states alone (no text) yield to an end that the scheduler or the user decided.
//  2. The scheduler's end. A job state (TIMEOUT, CANCELLED, PREEMPTED, NODE_FAIL, OUT_OF_MEMORY), a
//     banner with a reason (time limit, preemption), or an unclean end at the job's end time by the
//     scheduler's clock. These outrank text, and a user stop too: at the time limit ezpz itself
//     gets a SIGTERM. Exit codes 143 and 137 say nothing by themselves.
//  3. A user stop. SIGINT, SIGTERM or SIGHUP to ezpz ends in `cancelled`, never in `success`,
//     unless something had died before the first sign of the teardown: then that is the cause.
//     Then a guard's: ranks on another network than was required are an environment fault; one host
//     alone of several is a suspect.
//  4. A cancelled step. A bare CANCELLED banner (or one with reason "cancelled") before which
//     nothing had died: somebody cancelled it. After a death it is only srun's own
//     --kill-on-bad-exit, and after memory ran out only what follows from that.
//  5. A clean end. Exit code 0, by itself, and no rank's death: success. Error texts that a program
//     printed and survived are set aside.
//  6. The first genuine cause (first_cause.h). Teardown begins at the first mark of a cancel,
//     terminate, abort, limit, a signal of ours or a death by TERM; what dies after it is a victim.
//     Of what came before, evidence that cannot be an echo of somebody else's death (memory, GPU,
//     environment, filesystem, port, launcher; ranks of one host SIGKILLed) wins over evidence that
//     can (tracebacks, lost connections, timeouts, crashes), and that over a bare exit code; among
//     equals the first wins. A cause of the strong sort may still be printed after the teardown
//     began. What it says of hosts:
//       - ranks killed by SIGKILL on exactly one host while others lived: node_failure, and that
//         host is convicted, because the innocent causes have been asked for by now: memory (rule
//         6, before it), cancelled (4), time limit (2), a signal of ours (teardown). On two or more
//         hosts, or on every host, or on a host that cannot be told: nobody;
//       - a hardware GPU error on exactly one known host convicts it, and so does one without a
//       host
//         in a job that is known to have one host; an application's never does;
//       - a host that somebody could not reach (a launcher lost its daemon there, a start failed)
//       is
//         a suspect, and convicted only when an independent speaker names it too: a bad route or a
//         launcher's bug prints the same (public cases: a head node behind NAT, wrong munge keys).
//         A launcher that lost one of several hosts after the job had made steps had reached it
//         until then, and kept the others: that convicts;
//       - a launcher that cannot start ranks on exactly one host convicts it when its message says
//         the node failed; on several hosts it is congestion, a launcher_fault;
//       - a collective that timed out blames nobody; the ranks that the others waited for are
//       named,
//         and their host, when it is one, is a suspect;
//       - a crash or an exit code is the program's: app_error, nobody is convicted;
//       - an environment, filesystem or launcher trouble on one host alone of several makes it a
//         suspect: to be probed, swapped only if that fails;
//       - the same failure on two or more hosts convicts nobody, unless several independent
//       speakers
//         name one of them and one speaker each of the others.
//  7. Ended from outside. A return code that says the command could not be run (126, 127) is an
//     environment fault. Deaths by TERM alone, or a program's word that it was interrupted, with no
//     clock and no scheduler to ask: cancelled, at low confidence. With a clock that says there was
//     time left it stays unknown.
//  8. Silence. The watchdog (ours, the site's, timeout(1)) ended it and nothing is a cause: hang,
//     nobody is convicted.
//  9. Only echoes: of a lost network or a timed-out collective, which is then the verdict, at low
//     confidence.
// 10. Unknown stays unknown.
//
// Before all that: in a log of several runs what ended an earlier one is history (runs.h).
//
// Throughout: only active hosts are convicted. A host outside the active set is set aside; one that
// was retired earlier is set aside and flagged, because ranks should not have run there. Lines of
// role context are never evidence (the banner's `ON h`, reporters). Rank numbers become hosts only
// through the launcher's map or what the output itself placed; addresses only through node_key.
#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "verdict/case_file.h"
#include "verdict/death.h"
#include "verdict/finding.h"
#include "verdict/first_cause.h"
#include "verdict/judge.h"
#include "verdict/network.h"
#include "verdict/node_state.h"
#include "verdict/remedy.h"
#include "verdict/runs.h"
#include "verdict/support.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {
namespace {

// The scheduler ends a job a little early or late by other clocks than ours.
constexpr double kClockTolerance_s = 10;

// ---- rule 1: a lost node

std::vector<std::string> hosts_the_scheduler_lost(const CaseFile& file) {
  const auto& states = file.record.scheduler.node_states;
  std::vector<std::string> lost;
  for (const std::string& host : file.record.active) {
    const auto state = states.find(host);
    if (state == states.end()) continue;
    const NodeHealth health = node_health(state->second);
    // A node may miss a ping and live: silence counts only where something went wrong.
    if (health == NodeHealth::lost || (health == NodeHealth::silent && !file.record.exit.clean())) {
      lost.push_back(host);
    }
  }
  return lost;
}

// A stated end by somebody's decision, which mere node states do not overrule.
bool somebody_decided_the_end(const CaseFile& file) {
  if (file.record.ending == Ending::user_stop) return true;
  const Kind end = end_of_job(file.record.scheduler.job_state.value_or("")).value_or(Kind::unknown);
  if (end == Kind::walltime || end == Kind::cancelled || end == Kind::preempted) return true;
  return std::any_of(file.exhibits.begin(), file.exhibits.end(), [](const Exhibit& exhibit) {
    return exhibit.fact->event == Event::limit && exhibit.fact->kind != Kind::node_failure;
  });
}

// Node losses that count: of an active host, or of one whose name the message leaves out.
std::vector<const Exhibit*> reported_losses(const CaseFile& file) {
  std::vector<const Exhibit*> losses;
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& fact = *exhibit.fact;
    const bool loss = fact.event == Event::node_lost ||
                      (fact.event == Event::limit && fact.kind == Kind::node_failure);
    if (!loss || fact.role == Role::context) continue;
    if (exhibit.standing == Standing::retired) continue;
    // With no active set to go by, a loss is a loss, though nobody can be convicted of it.
    if (exhibit.standing == Standing::outside && !file.record.active.empty()) continue;
    if (file.record.ending == Ending::user_stop && exhibit.in_teardown) continue;
    losses.push_back(&exhibit);
  }
  return losses;
}

std::string_view speaker(Source source) {
  switch (source) {
    case Source::scheduler:
      return "the scheduler";
    case Source::agent:
      return "its rank agent";
    case Source::probe:
      return "a probe";
    case Source::output:
    case Source::self:
      break;
  }
  return "the launcher";
}

// A node was lost, nobody says which, and exactly one host could not be reached: that one.
void convict_the_one_out_of_reach(const CaseFile& file, Finding* finding) {
  std::vector<const Exhibit*> out_of_reach;
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& fact = *exhibit.fact;
    if (!is_lost_contact(fact.event) || fact.role != Role::cause) continue;
    if (!exhibit.host.empty()) out_of_reach.push_back(&exhibit);
  }
  if (hosts_of(out_of_reach).size() != 1) return;
  finding->use(out_of_reach);
  for (const Exhibit* exhibit : out_of_reach) convict(file, *exhibit, finding);
}

// Nodes that were bought or woken for the job and never came up: srun calls the first of them
// failed, and waits for all. Of several none is to blame more than the service that should have
// started them.
std::vector<const Exhibit*> never_booted(const CaseFile& file) {
  std::vector<const Exhibit*> nodes;
  for (const Exhibit& exhibit : file.exhibits) {
    if (exhibit.fact->event == Event::not_booted && !exhibit.host.empty())
      nodes.push_back(&exhibit);
  }
  return nodes;
}

bool is_one_of(const std::vector<const Exhibit*>& exhibits, const std::string& host) {
  return std::any_of(exhibits.begin(), exhibits.end(),
                     [&host](const Exhibit* exhibit) { return exhibit->host == host; });
}

std::optional<Finding> by_missing_nodes(const CaseFile& file) {
  const std::vector<const Exhibit*> missing = never_booted(file);
  const std::set<std::string> hosts = hosts_of(missing);
  if (hosts.size() < 2) return std::nullopt;
  for (const Exhibit* loss : reported_losses(file)) {
    if (loss->host.empty() || !is_one_of(missing, loss->host)) return std::nullopt;
  }
  Finding finding = found(Kind::env_fault, confidence::kSaidByLauncher,
                          "environment fault: " + host_words({hosts.begin(), hosts.end()}) +
                              " never came up, and nothing has run",
                          "none of the nodes that never came up failed alone");
  finding.use(missing);
  return finding;
}

std::optional<Finding> by_node_loss(const CaseFile& file) {
  const std::vector<const Exhibit*> losses = reported_losses(file);
  std::vector<std::string> by_state;
  if (!losses.empty() || !somebody_decided_the_end(file)) by_state = hosts_the_scheduler_lost(file);
  if (losses.empty() && by_state.empty()) return std::nullopt;

  Finding finding = found(Kind::node_failure, confidence::kSaidByLauncher, "",
                          "after a node loss the survivors are ended: not what began it");
  Verdict& verdict = finding.verdict;
  finding.use(losses);
  for (const Exhibit* loss : losses) {
    // A banner's host is the step's first node, never the lost one.
    if (loss->fact->event == Event::node_lost && !loss->host.empty()) {
      convict(file, *loss, &finding);
    }
  }
  for (const std::string& host : by_state) {
    verdict.confidence = confidence::kSaidByScheduler;
    const bool named = std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                                   [&](const Culprit& culprit) { return culprit.host == host; });
    if (named) continue;
    const std::vector<int> seats = file.ranks_on(host);
    verdict.culprits.push_back({host, Provenance::scheduler, seats, kNoFact});
    verdict.dead_ranks.insert(verdict.dead_ranks.end(), seats.begin(), seats.end());
  }
  std::sort(verdict.dead_ranks.begin(), verdict.dead_ranks.end());

  if (verdict.culprits.empty()) convict_the_one_out_of_reach(file, &finding);
  if (verdict.culprits.empty()) {
    verdict.summary = "node failure: a node was lost, and nothing says which";
    return finding;
  }
  std::vector<std::string> hosts;
  for (const Culprit& culprit : verdict.culprits) hosts.push_back(culprit.host);
  const Culprit& first = verdict.culprits.front();
  verdict.summary = "node failure: " + host_words(hosts) + (hosts.size() > 1 ? " were" : " was") +
                    " reported lost by ";
  verdict.summary += first.fact == kNoFact ? speaker(Source::scheduler)
                                           : speaker(file.record.facts[first.fact].source);
  if (first.fact == kNoFact) {
    verdict.summary += " (state " + file.record.scheduler.node_states.at(first.host) + ")";
  }
  return finding;
}

// ---- rule 2: the scheduler's end

std::string ended_by(Kind kind, std::string_view how) {
  std::string text;
  switch (kind) {
    case Kind::walltime:
      text = "walltime: the time limit was reached";
      break;
    case Kind::preempted:
      text = "preempted: the scheduler took the nodes back";
      break;
    case Kind::cancelled:
      text = "cancelled: somebody cancelled the job";
      break;
    case Kind::oom:
      text = "out of memory: the job went over its memory limit";
      break;
    default:
      text = words_of(kind);
  }
  return text + " (" + std::string(how) + ")";
}

bool is_stated_end(const Fact& fact) {
  if (fact.role == Role::context && fact.event != Event::limit) return false;
  const bool ending = fact.kind == Kind::walltime || fact.kind == Kind::preempted;
  switch (fact.event) {
    case Event::limit:
      return ending || fact.kind == Kind::oom;
    case Event::teardown:
    case Event::message:
      return ending;
    default:
      return false;
  }
}

bool ended_at_the_clock(const AttemptRecord& record) {
  return record.scheduler.end_time_s && record.ended_s > 0 &&
         record.ended_s >= *record.scheduler.end_time_s - kClockTolerance_s;
}

std::optional<Finding> by_scheduler_end(const CaseFile& file) {
  constexpr std::string_view kOutranked = "the scheduler ended the attempt: its word outranks text";
  const AttemptRecord& record = file.record;
  const auto stated = std::find_if(file.exhibits.begin(), file.exhibits.end(),
                                   [](const Exhibit& e) { return is_stated_end(*e.fact); });
  const std::optional<Kind> state =
      record.scheduler.job_state ? end_of_job(*record.scheduler.job_state) : std::nullopt;
  std::optional<Finding> finding;
  if (state && *state != Kind::node_failure) {
    finding = found(*state, confidence::kSaidByScheduler,
                    ended_by(*state, "job state " + *record.scheduler.job_state),
                    std::string(kOutranked));
  } else if (state) {
    finding = found(*state, confidence::kSaidByScheduler,
                    "node failure: the scheduler ended the job for a lost node (job state " +
                        *record.scheduler.job_state + "), and nothing says which",
                    std::string(kOutranked));
  } else if (stated != file.exhibits.end()) {
    const Kind kind = stated->fact->kind;
    finding = found(kind, confidence::kSaidByScheduler, ended_by(kind, place_of(*stated->fact)),
                    std::string(kOutranked));
  } else if (ended_at_the_clock(record) && (!record.exit.clean() || file.teardown)) {
    finding = found(Kind::walltime, confidence::kSaidByScheduler,
                    ended_by(Kind::walltime, "by the scheduler's clock"), std::string(kOutranked));
  }
  if (finding && stated != file.exhibits.end() && stated->fact->kind == finding->verdict.kind) {
    finding->use(*stated);
  }
  return finding;
}

// ---- rule 3: a user stop

std::optional<Finding> by_user_stop(const CaseFile& file) {
  if (file.record.ending != Ending::user_stop) return std::nullopt;
  // Without a sign of the teardown every death may be of our own making.
  if (file.teardown && !file.first_deaths().empty()) return std::nullopt;
  Finding finding = found(Kind::cancelled, confidence::kSaidByScheduler,
                          "cancelled: ezpz was asked to stop and ended the attempt",
                          "the attempt was running until ezpz was asked to stop");
  if (file.teardown) finding.use(file.exhibits[*file.teardown]);
  return finding;
}

// ---- a guard of ours

std::optional<Finding> by_guard(const CaseFile& file) {
  if (file.record.ending != Ending::guard) return std::nullopt;
  const std::optional<WrongNetwork> wrong =
      wrong_network(file.record.network, file.record.facts, file.node_key);
  Finding finding =
      found(Kind::env_fault, confidence::kSaidByLauncher,
            "environment fault: " +
                (wrong ? in_words(*wrong, file.record.network)
                       : "the ranks do not use the network " + file.record.network.expected) +
                ", which was required",
            "the attempt was running until the wrong network was seen");
  if (!wrong) return finding;
  for (const size_t fact : wrong->facts) finding.use(file.exhibits[fact]);
  if (wrong->one_alone() && file.is_active(wrong->hosts.front())) {
    finding.verdict.suspects = {wrong->hosts.front()};
  }
  return finding;
}

// ---- rule 4: a cancelled step

// srun gives a step up when a rank fails and tells of the ranks afterwards: one that left with an
// exit code of its own, while the others had to be killed.
bool ended_by_itself(const CaseFile& file) {
  bool exited = false;
  bool killed = false;
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& fact = *exhibit.fact;
    if (fact.event != Event::death || !exhibit.in_teardown) continue;
    exited = exited || (hand_in_death(fact) == Hand::exit && fact.code > 0);
    killed = killed || fact.signal > 0;
  }
  return exited && killed;
}

// Something that explains why srun itself gave the step up.
bool something_failed_first(const CaseFile& file) {
  if (!file.first_deaths().empty()) return true;
  const std::optional<Cause> cause = first_cause(file);
  if (!cause) return false;
  const Event event = cause->exhibit->fact->event;
  if (cause->kind == Kind::app_error && !cause->exhibit->in_teardown && ended_by_itself(file)) {
    return true;
  }
  return cause->weight == Weight::proof ||
         ((event == Event::launcher || event == Event::aborted || is_lost_contact(event)) &&
          !cause->exhibit->in_teardown);
}

std::optional<Finding> by_cancel(const CaseFile& file) {
  const auto cancel =
      std::find_if(file.exhibits.begin(), file.exhibits.end(), [](const Exhibit& exhibit) {
        const Fact& fact = *exhibit.fact;
        return fact.kind == Kind::cancelled && fact.source != Source::self &&
               (fact.event == Event::teardown || fact.event == Event::limit ||
                (fact.event == Event::message && fact.role != Role::context));
      });
  if (cancel == file.exhibits.end() || file.we_ended_it) return std::nullopt;
  // A watchdog's word came first: the cancel is its doing.
  if (file.teardown && file.record.facts[*file.teardown].kind == Kind::hang) return std::nullopt;
  if (something_failed_first(file)) return std::nullopt;
  Finding finding = found(Kind::cancelled, confidence::kSaidByLauncher,
                          "cancelled: the step was cancelled (" + place_of(*cancel->fact) +
                              ") while every rank was alive",
                          "every rank was alive when the step was cancelled");
  finding.use(*cancel);
  return finding;
}

// ---- rule 5: a clean end

std::optional<Finding> by_clean_end(const CaseFile& file) {
  const AttemptRecord& record = file.record;
  if (record.ending != Ending::exited || !record.exit.clean()) return std::nullopt;
  if (!file.first_deaths().empty()) return std::nullopt;
  const bool late_oom =
      std::any_of(file.exhibits.begin(), file.exhibits.end(), [](const Exhibit& exhibit) {
        const Fact& fact = *exhibit.fact;
        return fact.event == Event::death && fact.kind == Kind::oom && fact.role == Role::cause;
      });
  if (late_oom) return std::nullopt;
  std::string summary = "success: the job ended with exit code 0";
  const auto memory = std::find_if(
      file.exhibits.begin(), file.exhibits.end(),
      [](const Exhibit& e) { return e.fact->kind == Kind::oom && e.fact->role == Role::cause; });
  if (memory != file.exhibits.end()) {
    summary += ", though memory ran out in it (" + place_of(*memory->fact) + ")";
  }
  if (record.user_asked_stop_by_signal) summary += ", after SIGUSR1 or SIGUSR2 was passed on to it";
  return found(Kind::success, confidence::kSaidByLauncher, std::move(summary),
               "the job ended with exit code 0 all the same");
}

// ---- rule 6: the first genuine cause

// Ours, or one that the job's script has.
bool ended_by_a_watchdog(const CaseFile& file) {
  if (file.record.ending == Ending::watchdog) return true;
  return file.teardown && file.record.facts[*file.teardown].kind == Kind::hang;
}

std::optional<Finding> by_first_cause(const CaseFile& file) {
  const std::optional<Cause> cause = first_cause(file);
  if (!cause) return std::nullopt;
  // Silence is a better word than an error text nobody can classify.
  if (cause->weight == Weight::unclassified && ended_by_a_watchdog(file)) return std::nullopt;
  return judge(file, *cause);
}

// ---- rules 7 to 9: no cause

// A program that hangs before its first step and has said what it waits for.
std::optional<Finding> waiting_since_the_start(const CaseFile& file) {
  if (file.record.progress.last_step) return std::nullopt;
  const auto last = std::find_if(
      file.exhibits.rbegin(), file.exhibits.rend(),
      [](const Exhibit& e) { return e.fact->event == Event::waiting && !e.in_teardown; });
  if (last == file.exhibits.rend()) return std::nullopt;
  Finding finding =
      found(Kind::hang, confidence::kInferred,
            "hang: no progress since the start, waiting on the network: \"" +
                printable(last->fact->reason, 120) + "\" (" + place_of(*last->fact) + ")",
            "came before the silence and did not end the attempt");
  finding.use(*last);
  return finding;
}

// A mark that knows a kind of its own ("FAILED (non-zero exit code ...)", a watchdog's last word).
std::optional<Finding> by_mark(const CaseFile& file) {
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& fact = *exhibit.fact;
    if (fact.event != Event::teardown) continue;
    std::optional<Finding> finding;
    if (fact.kind == Kind::app_error) {
      finding = found(Kind::app_error, confidence::kBareExit,
                      "program error: the launcher says a rank failed (" + place_of(fact) +
                          "), and nothing says which",
                      "came later");
    } else if (fact.kind == Kind::launcher_fault) {
      finding = found(Kind::launcher_fault, confidence::kInferred,
                      "launcher fault: the launcher gave up (" + place_of(fact) +
                          "), and nothing says why or where",
                      "came later");
    } else if (fact.kind == Kind::hang) {
      finding = waiting_since_the_start(file);
      if (!finding)
        finding = found(
            Kind::hang, confidence::kSaidByLauncher,
            "hang: no output for too long (" + place_of(fact) + "), and nothing says why or where",
            "came before the silence or after its end");
    }
    if (!finding) continue;
    finding->use(exhibit);
    return finding;
  }
  return std::nullopt;
}

// The launcher's own exit code says that the command could not be run at all.
std::optional<Finding> by_unusable_command(const CaseFile& file) {
  Fact end;
  end.event = Event::death;
  end.code = file.record.exit.code;
  if (hand_in_death(end) != Hand::unusable) return std::nullopt;
  Finding finding = found(Kind::env_fault, confidence::kBareExit,
                          "environment fault: the command could not be run (exit code " +
                              std::to_string(end.code) + ")",
                          "came before the command that could not be run");
  for (const Exhibit& exhibit : file.exhibits) {
    if (exhibit.fact->kind == Kind::env_fault) finding.use(exhibit);
  }
  return finding;
}

std::optional<Finding> by_outside_end(const CaseFile& file) {
  const AttemptRecord& record = file.record;
  if (record.ending != Ending::exited) return std::nullopt;
  if (record.scheduler.end_time_s || record.scheduler.job_state || record.ended_s > 0) {
    return std::nullopt;
  }
  const auto asked =
      std::find_if(file.exhibits.begin(), file.exhibits.end(), [](const Exhibit& exhibit) {
        const Fact& fact = *exhibit.fact;
        // A program's own word that it was interrupted counts like its death by that signal.
        const bool interrupted = fact.event == Event::message && fact.kind == Kind::cancelled;
        return interrupted || (fact.event == Event::death && hand_in_death(fact) == Hand::asked);
      });
  if (asked == file.exhibits.end()) return std::nullopt;
  Finding finding = found(Kind::cancelled, confidence::kInferred,
                          "ended from outside: every death is by a request to stop (" +
                              place_of(*asked->fact) + "), and nothing says whose",
                          "ended from outside");
  finding.use(*asked);
  return finding;
}

// What timeout(1), and watchdogs that follow its example, return when time was up.
constexpr int kTimedOut = 124;

std::optional<Finding> by_silence(const CaseFile& file) {
  const AttemptRecord& record = file.record;
  if (record.ending == Ending::exited && record.exit.code == kTimedOut) {
    if (std::optional<Finding> waits = waiting_since_the_start(file)) return waits;
    return found(Kind::hang, confidence::kInferred,
                 "hang: the launcher was ended by a time-out (exit code 124), and nothing says why "
                 "or where",
                 "came before and did not end the attempt");
  }
  if (record.ending != Ending::watchdog) return std::nullopt;
  if (std::optional<Finding> waits = waiting_since_the_start(file)) return waits;
  std::string summary = "hang: no output for too long, and nothing says why or where";
  if (!file.record.progress.last_step)
    summary = "hang: no progress since the start, and nothing says why or where";
  return found(Kind::hang, confidence::kInferred, std::move(summary),
               "came before the silence and did not end the attempt");
}

// Nothing but echoes: what they echo is the best guess at what happened.
std::optional<Finding> by_echo(const CaseFile& file) {
  for (const Exhibit& exhibit : file.exhibits) {
    const Fact& fact = *exhibit.fact;
    if (exhibit.in_teardown) break;
    if (fact.role != Role::cascade || fact.event != Event::message) continue;
    if (fact.kind != Kind::fabric_fault && fact.kind != Kind::collective_timeout) continue;
    Finding finding =
        found(fact.kind, confidence::kInferred,
              std::string(words_of(fact.kind)) + ": only echoes were printed, first \"" +
                  printable(fact.text, 120) + "\" (" + place_of(fact) + ")",
              "an echo, too");
    finding.use(exhibit);
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> by_default(const CaseFile& file) {
  return found(Kind::unknown, confidence::kUnknown,
               file.record.exit_known
                   ? "unknown: the launcher ended with " + file.record.exit.describe() +
                         " and nothing says why"
                   : std::string("unknown: nothing in the log says how it ended or why"),
               "not enough to say what happened");
}

using Rule = std::optional<Finding> (*)(const CaseFile&);
constexpr std::array<Rule, 14> kRules{
    by_missing_nodes, by_node_loss, by_scheduler_end, by_user_stop, by_guard,
    by_cancel,        by_clean_end, by_first_cause,   by_mark,      by_unusable_command,
    by_outside_end,   by_silence,   by_echo,          by_default,
};

// An attempt that lost its connections, or hung, before its first step, on a network that the
// machine is not meant to be used with: what reads like a trouble of the store or of a peer is most
// often that.
void blame_the_fallback(const CaseFile& file, Finding* finding) {
  Verdict& verdict = finding->verdict;
  const bool like_it = verdict.kind == Kind::fabric_fault ||
                       verdict.kind == Kind::collective_timeout || verdict.kind == Kind::hang;
  if (!like_it || !verdict.culprits.empty() || file.record.progress.last_step) return;
  const std::optional<WrongNetwork> wrong =
      wrong_network(file.record.network, file.record.facts, file.node_key);
  if (!wrong) return;
  for (const size_t fact : wrong->facts) finding->use(file.exhibits[fact]);
  verdict.summary = "environment fault: " + in_words(*wrong, file.record.network) +
                    ", and no step was made; then: " + verdict.summary;
  verdict.kind = Kind::env_fault;
  verdict.suspects.clear();
  if (wrong->one_alone() && file.is_active(wrong->hosts.front())) {
    verdict.suspects = {wrong->hosts.front()};
  }
}

Verdict attribute_run(const AttemptRecord& record, const NodeKey& node_key,
                      const RemedyOf& remedy_of) {
  const CaseFile file = open_case(record, node_key);
  for (const Rule rule : kRules) {
    std::optional<Finding> finding = rule(file);
    if (!finding) continue;
    blame_the_fallback(file, &*finding);
    close_finding(file, &*finding);
    finding->verdict.remedy = remedy_for(record, finding->verdict, remedy_of);
    return std::move(finding->verdict);
  }
  return {};
}

}  // namespace

Verdict attribute(const AttemptRecord& record, const NodeKey& node_key, const RemedyOf& remedy_of) {
  if (const int64_t end = earlier_runs_end(record); end > 0) {
    const AttemptRecord last = last_run_of(record, end);
    Verdict verdict = attribute_run(last, node_key, remedy_of);
    verdict.summary += "; what ended an earlier run of this log (up to line " +
                       std::to_string(end) + ") is history";
    return verdict;
  }
  return attribute_run(record, node_key, remedy_of);
}
}  // namespace ezpz::verdict
