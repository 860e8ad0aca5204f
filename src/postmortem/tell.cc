#include "postmortem/tell.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "failover/record_json.h"
#include "verdict/network.h"

namespace ezpz::postmortem {
namespace {

constexpr size_t kMostLines = 12;  // of evidence, and of each reason for setting aside
constexpr size_t kMostText = 160;

std::string hosts_of(const std::vector<verdict::Culprit>& culprits) {
  std::vector<std::string> hosts;
  hosts.reserve(culprits.size());
  for (const verdict::Culprit& culprit : culprits) hosts.push_back(culprit.host);
  return join(hosts, ", ");
}

std::string what_to_do(const Autopsy& autopsy) {
  const verdict::Verdict& verdict = autopsy.verdict;
  std::string text;
  switch (autopsy.decision.action) {
    case verdict::Action::swap:
      text = "swap " + hosts_of(verdict.culprits) + " for a spare and relaunch";
      break;
    case verdict::Action::retry_same:
      text = "relaunch on the same hosts";
      break;
    case verdict::Action::probe:
      text = verdict.suspects.empty() ? "check the hosts, relaunch without those that fail"
                                      : "check " + join(verdict.suspects, ", ") +
                                            ", and relaunch without it if it fails";
      break;
    case verdict::Action::stop:
      text = verdict.kind == Kind::success ? "nothing" : "do not relaunch as it is";
      break;
  }
  if (!verdict.remedy.empty()) text += ". " + verdict.remedy;
  return text;
}

std::string how_far(const evidence::Progress& progress) {
  if (!progress.last_step) {
    return progress.resumed_from
               ? fmt::format("resumed from step {}, no step after it", *progress.resumed_from)
               : std::string("no step seen");
  }
  std::string text = fmt::format("came to step {}", *progress.last_step);
  if (progress.first_step && *progress.first_step != *progress.last_step) {
    text = fmt::format("steps {} to {}", *progress.first_step, *progress.last_step);
  }
  if (progress.last_checkpoint) text += fmt::format(", checkpoint {}", *progress.last_checkpoint);
  return text;
}

std::string place_of(const Fact& fact) {
  if (fact.line > 0) return fmt::format("line {}", fact.line);
  return std::string(to_string(fact.source));
}

std::string fact_line(const Fact& fact) {
  std::string text = place_of(fact);
  text.resize(std::max<size_t>(text.size(), 10), ' ');
  return "  " + text + " " + printable(fact.text, kMostText) + "\n";
}

std::string evidence_of(const Autopsy& autopsy) {
  const std::vector<size_t>& used = autopsy.verdict.used;
  if (used.empty()) return {};
  std::string text = "\nevidence\n";
  for (size_t i = 0; i < used.size() && i < kMostLines; ++i) {
    text += fact_line(autopsy.record.facts[used[i]]);
  }
  if (used.size() > kMostLines) text += fmt::format("  and {} more\n", used.size() - kMostLines);
  return text;
}

std::string set_aside_of(const Autopsy& autopsy) {
  std::vector<std::string> reasons;  // in the order of the log
  std::map<std::string, std::vector<size_t>> facts;
  for (const verdict::SetAside& each : autopsy.verdict.set_aside) {
    std::vector<size_t>& of_reason = facts[each.reason];
    if (of_reason.empty()) reasons.push_back(each.reason);
    of_reason.push_back(each.fact);
  }
  if (reasons.empty()) return {};
  std::string text = "\nset aside\n";
  for (const std::string& reason : reasons) {
    text += "  " + reason + ":\n";
    const std::vector<size_t>& of_reason = facts[reason];
    for (size_t i = 0; i < of_reason.size() && i < kMostLines; ++i) {
      text += "  " + fact_line(autopsy.record.facts[of_reason[i]]);
    }
    if (of_reason.size() > kMostLines) {
      text += fmt::format("    and {} more\n", of_reason.size() - kMostLines);
    }
  }
  return text;
}

// Which network the ranks used, where their lines tell it.
std::string network_of(const Autopsy& autopsy) {
  std::vector<std::string> parts;
  const auto add = [&](Event event, const char* what) {
    for (const verdict::NetworkUse& use :
         verdict::uses_of(event, autopsy.record.facts, autopsy.node_key)) {
      parts.push_back(what + use.name);
    }
  };
  add(Event::network, "");
  add(Event::provider, "provider ");
  add(Event::version, "library ");
  return parts.empty() ? std::string() : "\nnet:  " + join(parts, ", ");
}

std::string head_of(const Autopsy& autopsy) {
  return autopsy.verdict.summary + "\ndo:   " + what_to_do(autopsy) + network_of(autopsy) +
         fmt::format("\nsure: {:.0f} %; {}\n", autopsy.verdict.confidence * 100,
                     how_far(autopsy.record.progress));
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json facts_json(const Autopsy& autopsy) {
  const verdict::Verdict& verdict = autopsy.verdict;
  const std::set<size_t> used(verdict.used.begin(), verdict.used.end());
  std::map<size_t, std::string> aside;
  for (const verdict::SetAside& each : verdict.set_aside) aside[each.fact] = each.reason;
  Json facts = Json::array();
  for (size_t i = 0; i < autopsy.record.facts.size(); ++i) {
    const Fact& fact = autopsy.record.facts[i];
    Json json = {{"line", fact.line > 0 ? Json(fact.line) : Json(nullptr)},
                 {"offset", fact.line > 0 ? Json(fact.offset) : Json(nullptr)},
                 {"source", std::string(to_string(fact.source))},
                 {"pattern", fact.pattern},
                 {"kind", std::string(to_string(fact.kind))},
                 {"role", std::string(to_string(fact.role))},
                 {"event", std::string(to_string(fact.event))},
                 {"host", text_or_null(fact.host)},
                 {"rank", fact.ranks.size() == 1 ? Json(fact.ranks.front()) : Json(nullptr)},
                 {"text", fact.text},
                 {"used", used.contains(i)}};
    if (!fact.ranks.empty()) json["ranks"] = ranges(fact.ranks);
    if (!fact.label.empty()) json["label"] = fact.label;
    if (!fact.ip.empty()) json["ip"] = fact.ip;
    if (fact.signal != 0) json["signal"] = fact.signal;
    if (fact.code >= 0) json["code"] = fact.code;
    if (!fact.reason.empty()) json["reason"] = fact.reason;
    if (const auto why = aside.find(i); why != aside.end()) json["set_aside"] = why->second;
    facts.push_back(std::move(json));
  }
  return facts;
}

}  // namespace

std::string tell(const Autopsy& autopsy) {
  return printable_lines(head_of(autopsy) + evidence_of(autopsy) + set_aside_of(autopsy));
}

std::string tell(const Replay& replay) {
  std::string text = fmt::format(
      "job {} on {}: {} attempt{}, {}\n", replay.job_id, replay.machine, replay.attempts.size(),
      replay.attempts.size() == 1 ? "" : "s",
      replay.stop_reason.empty() ? "its end is not recorded" : "ended: " + replay.stop_reason);
  for (const Replayed& attempt : replay.attempts) {
    text += fmt::format("\nattempt {}: {}", attempt.autopsy.record.attempt,
                        head_of(attempt.autopsy) + evidence_of(attempt.autopsy));
    if (attempt.log.empty()) text += "  (its log is gone: judged by the facts in the journal)\n";
    if (!attempt.recorded.action.empty()) {
      text += fmt::format("then: {}: {}\n", attempt.recorded.action, attempt.recorded.why);
    }
    if (!attempt.agrees()) {
      text += fmt::format("NOTE: the record says {}{}\n",
                          attempt.recorded.verdict.empty() ? "nothing" : attempt.recorded.verdict,
                          attempt.recorded.culprits.empty()
                              ? ""
                              : " and names " + join(attempt.recorded.culprits, ", "));
    }
  }
  if (replay.unreadable_lines > 0) {
    text += fmt::format("\n{} lines of the journal could not be read\n", replay.unreadable_lines);
  }
  return printable_lines(text);
}

std::string table(const std::vector<Named>& logs) {
  size_t width = 3;
  for (const Named& log : logs) width = std::max(width, log.log.size());
  std::string text = fmt::format("{:<{}}  {:<18}  {:<10}  {:>5}  {}\n", "log", width, "verdict",
                                 "action", "sure", "what ended it");
  for (const Named& log : logs) {
    const verdict::Verdict& verdict = log.autopsy.verdict;
    text += fmt::format("{:<{}}  {:<18}  {:<10}  {:>3.0f} %  {}\n", log.log, width,
                        to_string(verdict.kind), to_string(log.autopsy.decision.action),
                        verdict.confidence * 100, printable(verdict.summary, kMostText));
  }
  return printable_lines(text);
}

Json to_json(const Autopsy& autopsy) {
  const verdict::Verdict& verdict = autopsy.verdict;
  const verdict::AttemptRecord& record = autopsy.record;
  Json culprits = Json::array();
  Json convictions = Json::array();
  for (const verdict::Culprit& culprit : verdict.culprits) {
    culprits.push_back(culprit.host);
    Json conviction = {{"host", culprit.host},
                       {"provenance", std::string(to_string(culprit.provenance))},
                       {"ranks", ranges(culprit.ranks)}};
    if (culprit.fact < record.facts.size()) conviction["line"] = record.facts[culprit.fact].line;
    convictions.push_back(std::move(conviction));
  }
  const evidence::Progress& progress = record.progress;
  return {{"verdict", std::string(to_string(verdict.kind))},
          {"action", std::string(to_string(autopsy.decision.action))},
          {"culprits", culprits},
          {"confidence", verdict.confidence},
          {"rc", record.exit_known ? Json(record.exit.shell_code()) : Json(nullptr)},
          {"walltime_left_s", or_null(autopsy.walltime_left_s)},
          {"progress",
           {{"first", or_null(progress.first_step)},
            {"last", or_null(progress.last_step)},
            {"last_checkpoint", or_null(progress.last_checkpoint)},
            {"resumed_from", or_null(progress.resumed_from)}}},
          {"network", failover::equipment_json(record.facts, autopsy.node_key)},
          {"summary", verdict.summary},
          {"why", autopsy.decision.why},
          {"remedy", text_or_null(verdict.remedy)},
          {"convictions", convictions},
          {"suspects", verdict.suspects},
          {"dead_ranks", ranges(verdict.dead_ranks)},
          {"facts", facts_json(autopsy)}};
}

Json to_json(const Replay& replay) {
  Json attempts = Json::array();
  bool agrees = true;
  for (const Replayed& attempt : replay.attempts) {
    Json json = {{"attempt", attempt.autopsy.record.attempt}, {"log", text_or_null(attempt.log)}};
    json.update(to_json(attempt.autopsy));
    json["recorded"] = {{"verdict", text_or_null(attempt.recorded.verdict)},
                        {"culprits", attempt.recorded.culprits},
                        {"action", text_or_null(attempt.recorded.action)}};
    json["agrees"] = attempt.agrees();
    agrees = agrees && attempt.agrees();
    attempts.push_back(std::move(json));
  }
  return {{"job_id", replay.job_id},
          {"machine", replay.machine},
          {"stop_reason", text_or_null(replay.stop_reason)},
          {"agrees", agrees},
          {"unreadable_lines", replay.unreadable_lines},
          {"attempts", attempts}};
}

}  // namespace ezpz::postmortem
