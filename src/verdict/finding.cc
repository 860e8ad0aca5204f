#include "verdict/finding.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "verdict/death.h"

namespace ezpz::verdict {
namespace {

Provenance provenance_of(Source source) {
  switch (source) {
    case Source::scheduler:
      return Provenance::scheduler;
    case Source::agent:
      return Provenance::agent;
    case Source::probe:
      return Provenance::probed;
    case Source::output:
    case Source::self:
      break;
  }
  return Provenance::scraped;
}

void add_ranks(const std::vector<int>& more, std::vector<int>* ranks) {
  ranks->insert(ranks->end(), more.begin(), more.end());
  std::sort(ranks->begin(), ranks->end());
  ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
}

// Would a reader ask "and what about this line?"
bool wants_an_answer(const Fact& fact) {
  if (fact.event == Event::placement) return false;
  if (fact.role != Role::context) return true;
  return fact.event == Event::death || fact.event == Event::node_lost;
}

std::string why_set_aside(const CaseFile& file, const Exhibit& exhibit, const Finding& finding) {
  switch (exhibit.standing) {
    case Standing::retired:
      return exhibit.named + " was retired before this attempt: not convicted again";
    case Standing::outside:
      return exhibit.named + " is not one of this attempt's hosts";
    case Standing::nowhere:
    case Standing::active:
      break;
  }
  const Fact& fact = *exhibit.fact;
  if (fact.event == Event::teardown || fact.event == Event::limit) {
    return "says that the attempt was being ended, not why";
  }
  if (exhibit.in_teardown && file.teardown && *file.teardown != exhibit.index) {
    if (file.we_ended_it) return "after ezpz began to end the attempt";
    return "after the teardown began (" + place_of(file.record.facts[*file.teardown]) + ")";
  }
  if (fact.role == Role::cascade) return "a victim: ended because others had ended";
  if (fact.role == Role::context) return "context: blames nobody";
  if (fact.event == Event::death && hand_in_death(fact) == Hand::asked) {
    return "ended on request: somebody sent it a signal to stop";
  }
  return finding.why_not_the_rest;
}

// A fact of another origin that names the culprit as well.
bool is_corroborated(const CaseFile& file, const Verdict& verdict) {
  for (const Culprit& culprit : verdict.culprits) {
    std::set<std::pair<Source, std::string>> origins;
    for (const Exhibit& exhibit : file.exhibits) {
      if (exhibit.host == culprit.host && exhibit.fact->role == Role::cause) {
        origins.emplace(exhibit.fact->source, exhibit.fact->pattern);
      }
    }
    const size_t own = culprit.fact == kNoFact ? 0 : 1;
    if (origins.size() > own) return true;
  }
  return false;
}

}  // namespace

Finding found(Kind kind, double sure, std::string summary, std::string why_not_the_rest) {
  Finding finding;
  finding.verdict.kind = kind;
  finding.verdict.confidence = sure;
  finding.verdict.summary = std::move(summary);
  finding.why_not_the_rest = std::move(why_not_the_rest);
  return finding;
}

void convict(const CaseFile& file, const Exhibit& exhibit, Finding* finding) {
  const std::vector<int> seats = file.seats(exhibit);
  add_ranks(seats, &finding->verdict.dead_ranks);
  for (Culprit& culprit : finding->verdict.culprits) {
    if (culprit.host != exhibit.host) continue;
    add_ranks(seats, &culprit.ranks);
    return;
  }
  finding->verdict.culprits.push_back(
      {exhibit.host, provenance_of(exhibit.fact->source), seats, exhibit.index});
}

void close_finding(const CaseFile& file, Finding* finding) {
  Verdict& verdict = finding->verdict;
  std::sort(verdict.used.begin(), verdict.used.end());
  verdict.used.erase(std::unique(verdict.used.begin(), verdict.used.end()), verdict.used.end());
  for (const Exhibit& exhibit : file.exhibits) {
    if (exhibit.standing == Standing::retired && exhibit.fact->role == Role::cause) {
      verdict.retired_host_named = true;
    }
    if (std::binary_search(verdict.used.begin(), verdict.used.end(), exhibit.index)) continue;
    if (!wants_an_answer(*exhibit.fact)) continue;
    verdict.set_aside.push_back({exhibit.index, why_set_aside(file, exhibit, *finding)});
  }
  if (is_corroborated(file, verdict)) {
    verdict.confidence =
        std::min(verdict.confidence + confidence::kCorroboration, confidence::kMost);
  }
}

std::string_view words_of(Kind kind) {
  switch (kind) {
    case Kind::node_failure:
      return "node failure";
    case Kind::gpu_fault:
      return "GPU fault";
    case Kind::fabric_fault:
      return "fabric fault";
    case Kind::filesystem_fault:
      return "filesystem fault";
    case Kind::oom:
      return "out of memory";
    case Kind::app_error:
      return "program error";
    case Kind::env_fault:
      return "environment fault";
    case Kind::launcher_fault:
      return "launcher fault";
    case Kind::port_in_use:
      return "port in use";
    case Kind::collective_timeout:
      return "collective timeout";
    default:
      return to_string(kind);
  }
}

std::string rank_words(const std::vector<int>& ascending) {
  if (ascending.empty()) return {};
  return (ascending.size() == 1 ? "rank " : "ranks ") + ranges(ascending);
}

std::string host_words(const std::vector<std::string>& hosts) {
  std::string text;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) text += i + 1 == hosts.size() ? " and " : ", ";
    text += hosts[i];
  }
  return text;
}

std::string place_of(const Fact& fact) {
  if (fact.line > 0) return "line " + std::to_string(fact.line);
  switch (fact.source) {
    case Source::scheduler:
      return "the scheduler's word";
    case Source::agent:
      return "a rank agent's report";
    case Source::probe:
      return "a probe's answer";
    case Source::self:
      return "ezpz's own signal";
    case Source::output:
      break;
  }
  return "the output";
}

}  // namespace ezpz::verdict
