#include "verdict/judge.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "verdict/death.h"
#include "verdict/gpu_error.h"
#include "verdict/laggards.h"
#include "verdict/support.h"

namespace ezpz::verdict {
namespace {

std::string_view first_words(const Fact& fact) {
  constexpr size_t kShown = 120;
  return std::string_view(fact.text).substr(0, kShown);
}

// "program error: nid001306 rank 6 ended by signal 11 before anything else (line 12)"
std::string death_sentence(const CaseFile& file, const Exhibit& death) {
  const Fact& fact = *death.fact;
  std::string text = death.host;
  if (const std::string seats = rank_words(fact.ranks); !seats.empty()) {
    text += (text.empty() ? "" : " ") + seats;
  }
  if (text.empty()) text = "a process";
  const int signal = signal_of_death(fact);
  if (signal != 0) {
    text += " ended by signal " + std::to_string(signal);
  } else if (fact.code >= 0) {
    text += " exited with code " + std::to_string(fact.code);
  } else {
    text += " died";
  }
  text += " before anything else";
  if (fact.line > 0) text += " (" + place_of(file.record.facts[death.index]) + ")";
  return text;
}

std::string hosts_clause(const std::set<std::string>& hosts) {
  return "on " + std::to_string(hosts.size()) + " hosts at once, so no host is convicted";
}

// Ranks of one host SIGKILLed while the others lived.
Finding convict_killed_host(const CaseFile& file, const Killed& killed) {
  Finding finding = found(Kind::node_failure, confidence::kPartOfHostDied, "", "");
  finding.use(killed.deaths);
  for (const Exhibit* death : killed.deaths) convict(file, *death, &finding);
  Culprit& culprit = finding.verdict.culprits.front();
  if (!culprit.ranks.empty() && culprit.ranks == file.ranks_on(culprit.host)) {
    finding.verdict.confidence = confidence::kWholeHostDied;
  }
  finding.verdict.summary = "node failure: " + culprit.host + " lost " +
                            (culprit.ranks.empty() ? "ranks" : rank_words(culprit.ranks)) +
                            " (signal 9) before anything else ended";
  finding.why_not_the_rest = "an echo: " + culprit.host + " had lost its ranks";
  return finding;
}

// SIGKILL that convicts nobody.
Finding killed_somewhere(const CaseFile& file, const Killed& killed) {
  if (killed.hosts.size() == 1 && !file.has_hosts_besides(*killed.hosts.begin())) {
    return found(Kind::oom, confidence::kInferred,
                 "killed: the only host's ranks ended by signal 9 and nothing says who sent it; on "
                 "a single host that is most often the kernel short of memory",
                 "came after ranks were killed");
  }
  return found(Kind::unknown, confidence::kInferred,
               killed.hosts.size() > 1
                   ? "unknown: ranks were killed (signal 9) " + hosts_clause(killed.hosts)
                   : "unknown: ranks were killed (signal 9) on a host that cannot be told",
               "came after ranks were killed");
}

Finding judge_death(const CaseFile& file, const Cause& cause) {
  const Exhibit& death = *cause.exhibit;
  const Hand hand = hand_in_death(*death.fact);
  if (hand == Hand::outside) {
    const Killed killed_ranks = killed(file);
    return killed_ranks.one_host_alone ? convict_killed_host(file, killed_ranks)
                                       : killed_somewhere(file, killed_ranks);
  }
  const Kind kind = hand == Hand::unusable  ? Kind::env_fault
                    : hand == Hand::unknown ? Kind::unknown
                                            : Kind::app_error;
  std::string summary = std::string(words_of(kind)) + ": " + death_sentence(file, death);
  if (hand == Hand::unusable) summary += ": the command could not be run";
  return found(kind, confidence::kBareExit, std::move(summary), "an echo: it came later");
}

// May this message convict the one host it names?
bool may_convict(Kind kind, const Fact& fact) {
  switch (kind) {
    case Kind::gpu_fault:
      return gpu_error(fact) == GpuError::hardware;
    case Kind::node_failure:
      return !is_lost_contact(fact.event);
    default:
      return false;
  }
}

bool may_convict(const Cause& cause) { return may_convict(cause.kind, *cause.exhibit->fact); }

// A GPU in trouble says so in several ways, and not the first of them proves it broken.
bool one_of_them_may(const Cause& cause, const std::vector<const Exhibit*>& same) {
  return std::any_of(same.begin(), same.end(), [&cause](const Exhibit* exhibit) {
    return !exhibit->host.empty() && may_convict(cause.kind, *exhibit->fact);
  });
}

// A part of the one host that is named is broken, as that host's own kernel or driver says. One
// that is the only host of its log may be no node at all (a container's name).
bool has_broken_part(const CaseFile& file, const std::vector<const Exhibit*>& same) {
  return std::any_of(same.begin(), same.end(), [&file](const Exhibit* exhibit) {
    return exhibit->fact->event == Event::part_failed && !exhibit->host.empty() &&
           file.has_hosts_besides(exhibit->host);
  });
}

// A full file system or a used-up quota that hosts share is met by whoever writes first; only one
// of the node's own speaks against the node.
bool is_shared_trouble(const Fact& fact) {
  constexpr std::array<std::string_view, 4> kFull{"No space left", "quota", "ENOSPC", "EDQUOT"};
  constexpr std::array<std::string_view, 5> kOwn{"/tmp", "/dev/shm", "/var/", "/local", "/raid"};
  const auto holds = [&fact](std::string_view word) {
    return fact.text.find(word) != std::string::npos;
  };
  return std::any_of(kFull.begin(), kFull.end(), holds) &&
         std::none_of(kOwn.begin(), kOwn.end(), holds);
}

bool may_suspect(Kind kind, const Fact& fact) {
  if (kind == Kind::filesystem_fault) return !is_shared_trouble(fact);
  return kind == Kind::env_fault || kind == Kind::launcher_fault || kind == Kind::fabric_fault;
}

// A message of several lines, between which others print theirs: what counts is the step that had
// been made when it began.
int64_t step_before_message(const CaseFile& file, const Exhibit& exhibit) {
  constexpr int64_t kMostLines = 30;
  int64_t step = exhibit.fact->step;
  for (size_t i = exhibit.index; i-- > 0;) {
    const Fact& above = *file.exhibits[i].fact;
    if (above.source != Source::output || above.line + kMostLines < exhibit.fact->line) break;
    if (above.weak && speaker_of(above) == speaker_of(*exhibit.fact)) step = above.step;
  }
  return step;
}

// The launcher had reached this host (the job had made steps) and still reaches others. A host lost
// before any step, or the only one, may as well be behind a bad route.
bool is_lost_in_mid_run(const CaseFile& file, const Exhibit& exhibit) {
  const int64_t step = step_before_message(file, exhibit);
  // A single step may be another program's line.
  const bool ran = step >= 0 && step != file.record.progress.first_step;
  return exhibit.fact->event == Event::lost_of_several && ran && !exhibit.in_teardown;
}

// A host that somebody could not reach: true of a dead node, and of a living one behind a bad route
// or a launcher's bug. A second, independent witness decides.
Finding judge_lost_contact(const CaseFile& file, const Cause& cause,
                           const std::vector<const Exhibit*>& same) {
  const Fact& fact = *cause.exhibit->fact;
  const std::set<std::string> hosts = hosts_of(same);
  const std::string quoted = "\"" + printable(first_words(fact)) + "\" (" + place_of(fact) + ")";
  const std::string lost = named_by_several(file, hosts);
  if (!lost.empty()) {
    Finding finding = found(Kind::node_failure, confidence::kMessage,
                            "node failure: " + lost + " was lost: " + quoted +
                                ", and an independent report names it, too",
                            "an echo: " + lost + " was lost");
    for (const Exhibit& exhibit : file.exhibits) {
      if (exhibit.host != lost || exhibit.fact->role != Role::cause) continue;
      finding.use(exhibit);
      convict(file, exhibit, &finding);
    }
    return finding;
  }
  if (hosts.size() == 1 && is_lost_in_mid_run(file, *cause.exhibit)) {
    Finding finding =
        found(Kind::node_failure, confidence::kMessage,
              "node failure: " + *hosts.begin() + " was lost in the middle of the run: " + quoted,
              "an echo: " + *hosts.begin() + " was lost");
    for (const Exhibit* exhibit : same) {
      if (!exhibit->host.empty()) convict(file, *exhibit, &finding);
    }
    return finding;
  }
  const Kind kind =
      hosts.size() > 1 && cause.kind == Kind::node_failure ? Kind::launcher_fault : cause.kind;
  Finding finding = found(kind, confidence::kMessage, std::string(words_of(kind)) + ": " + quoted,
                          "an echo: " + place_of(fact) + " came first");
  if (hosts.size() > 1) finding.verdict.summary += " " + hosts_clause(hosts);
  if (hosts.size() == 1) {
    finding.verdict.suspects.push_back(*hosts.begin());
    finding.verdict.summary += ": " + *hosts.begin() + " may be lost, and nothing else says so";
  }
  return finding;
}

// A collective that timed out blames nobody; whom the others waited for is worth a probe.
void name_the_laggards(const CaseFile& file, Finding* finding) {
  const std::vector<int> behind = laggards(file);
  if (behind.empty()) return;
  Verdict& verdict = finding->verdict;
  verdict.dead_ranks = behind;
  verdict.summary += "; the others waited for " + rank_words(behind);
  std::set<std::string> hosts;
  for (const int rank : behind) {
    const auto host = file.host_of_rank.find(rank);
    if (host == file.host_of_rank.end()) return;
    hosts.insert(host->second);
  }
  if (hosts.size() != 1) return;
  verdict.summary += " on " + *hosts.begin();
  const auto& active = file.record.active;
  if (active.size() > 1 &&
      std::find(active.begin(), active.end(), *hosts.begin()) != active.end()) {
    verdict.suspects = {*hosts.begin()};
  }
}

// Where else than on the only host can its GPU have failed? Of a log alone that holds for a link
// between GPUs, when it shows one host and GPUs that talk inside it.
bool is_on_the_only_host(const CaseFile& file, const Fact& gpu_fault) {
  if (file.record.active_known) return file.record.active.size() == 1;
  return file.talks_within_one_host && gpu_fault.text.find("NVLink") != std::string::npos;
}

Finding judge_message(const CaseFile& file, const Cause& cause,
                      const std::vector<const Exhibit*>& same) {
  const std::set<std::string> hosts = hosts_of(same);
  const Fact& fact = *cause.exhibit->fact;
  Kind kind = cause.kind;
  if (kind == Kind::node_failure && fact.event == Event::launcher && hosts.size() > 1) {
    kind = Kind::launcher_fault;  // that many nodes do not break at once: congestion
  }
  Finding finding = found(
      kind, cause.weight == Weight::unclassified ? confidence::kUnknown : confidence::kMessage,
      std::string(words_of(kind)) + ": ", "an echo: " + place_of(fact) + " came first");
  Verdict& verdict = finding.verdict;
  const std::string quoted = "\"" + printable(first_words(fact)) + "\" (" + place_of(fact) + ")";
  if (hosts.size() > 1) {
    const std::string named = may_convict(cause) ? named_by_several(file, hosts) : std::string();
    if (named.empty()) {
      verdict.summary += quoted + " " + hosts_clause(hosts);
      return finding;
    }
    for (const Exhibit* exhibit : same) {
      if (exhibit->host == named) convict(file, *exhibit, &finding);
    }
    verdict.summary += named + " is named by several independent reports";
    return finding;
  }
  verdict.summary += quoted;
  if (hosts.empty()) {
    if (cause.kind == Kind::gpu_fault && may_convict(cause) && is_on_the_only_host(file, fact)) {
      Exhibit placed = *cause.exhibit;
      placed.host = file.record.active.front();
      verdict.summary += " on " + placed.host + ", the only host";
      convict(file, placed, &finding);
    }
    return finding;
  }
  verdict.summary += " on " + *hosts.begin();
  if (may_convict(cause) || one_of_them_may(cause, same) || has_broken_part(file, same)) {
    for (const Exhibit* exhibit : same) {
      if (!exhibit->host.empty()) convict(file, *exhibit, &finding);
    }
  } else if (may_suspect(kind, fact) && file.has_hosts_besides(*hosts.begin())) {
    verdict.suspects.push_back(*hosts.begin());
    verdict.summary += ", on that host alone";
  }
  return finding;
}

}  // namespace

Finding judge(const CaseFile& file, const Cause& cause) {
  const std::vector<const Exhibit*> same = same_failure(file, cause);
  const bool bare_death = cause.exhibit->fact->event == Event::death && cause.kind == Kind::unknown;
  Finding finding =
      bare_death ? judge_death(file, cause)

      : is_lost_contact(cause.exhibit->fact->event) && cause.kind != Kind::collective_timeout
          ? judge_lost_contact(file, cause, same)
          : judge_message(file, cause, same);
  finding.use(same);
  if (finding.verdict.kind == Kind::collective_timeout) name_the_laggards(file, &finding);
  if (finding.verdict.dead_ranks.empty()) {
    std::set<int> dead;
    for (const Exhibit* death : bare_death ? same : file.first_deaths()) {
      dead.insert(death->fact->ranks.begin(), death->fact->ranks.end());
    }
    finding.verdict.dead_ranks.assign(dead.begin(), dead.end());
  }
  return finding;
}

}  // namespace ezpz::verdict
