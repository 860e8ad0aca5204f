#include "failover/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"

namespace ezpz::failover {
namespace {

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::optional<int64_t> step_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

AttemptStory& story_of(Story& story, int attempt) {
  for (AttemptStory& each : story.attempts) {
    if (each.attempt == attempt) return each;
  }
  story.attempts.push_back({});
  story.attempts.back().attempt = attempt;
  return story.attempts.back();
}

void read_attempt_end(const Json& context, AttemptStory& attempt) {
  attempt.started_s = number_of(context, "started_s");
  attempt.ended_s = number_of(context, "ended_s");
  if (const auto progress = context.find("progress");
      progress != context.end() && progress->is_object()) {
    attempt.first_step = step_of(*progress, "first");
    attempt.last_step = step_of(*progress, "last");
    attempt.resumed_from = step_of(*progress, "resumed_from");
  }
}

void read_verdict(const Json& context, AttemptStory& attempt) {
  attempt.verdict = text_of(context, "verdict");
  attempt.summary = text_of(context, "summary");
  attempt.remedy = text_of(context, "remedy");
  const auto culprits = context.find("culprits");
  if (culprits == context.end() || !culprits->is_array()) return;
  for (const Json& culprit : *culprits) {
    const std::string evidence = text_of(culprit, "evidence");
    if (evidence.empty()) continue;
    const auto line = static_cast<int64_t>(number_of(culprit, "line"));
    attempt.evidence.push_back(line > 0 ? fmt::format("line {}: {}", line, evidence) : evidence);
  }
}

// Steps an attempt repeated because the one before died after its last checkpoint.
int64_t redone(const AttemptStory& before, const AttemptStory& after) {
  if (!before.last_step || !after.first_step) return 0;
  return std::max<int64_t>(0, *before.last_step - *after.first_step + 1);
}

void sum_up(Story& story) {
  for (size_t i = 1; i < story.attempts.size(); ++i) {
    const AttemptStory& before = story.attempts[i - 1];
    const AttemptStory& after = story.attempts[i];
    const int64_t steps = redone(before, after);
    story.steps_redone += steps;
    if (before.ended_s > 0 && after.started_s > before.ended_s) {
      story.lost_s += after.started_s - before.ended_s;
    }
    const int64_t done =
        before.last_step && before.first_step ? *before.last_step - *before.first_step + 1 : 0;
    if (done > 0 && before.ended_s > before.started_s) {
      story.lost_s += static_cast<double>(steps) * (before.ended_s - before.started_s) /
                      static_cast<double>(done);
    }
  }
}

// "network: AWS Libfabric (cxi), NCCL 2.24.3+cuda12.4" and, where it is so, the fallback.
std::string tell_network(const Json& network) {
  const auto names = [&network](const char* what) {
    std::vector<std::string> found;
    const auto list = network.find(what);
    if (list == network.end() || !list->is_array()) return found;
    for (const Json& use : *list) {
      std::string name = text_of(use, "name");
      const auto hosts = use.find("hosts");
      if (list->size() > 1 && hosts != use.end() && hosts->is_array()) {
        name += fmt::format(" on {} host{}", hosts->size(), hosts->size() == 1 ? "" : "s");
        if (hosts->size() == 1 && hosts->front().is_string()) {
          name += " (" + hosts->front().get<std::string>() + ")";
        }
      }
      found.push_back(std::move(name));
    }
    return found;
  };
  std::vector<std::string> parts;
  if (const auto used = names("networks"); !used.empty()) parts.push_back(join(used, ", "));
  if (const auto used = names("providers"); !used.empty()) {
    parts.push_back("provider " + join(used, ", "));
  }
  if (const auto used = names("versions"); !used.empty()) {
    std::string text = "library " + join(used, ", ");
    const std::string asked = text_of(network, "nccl_asked");
    if (!asked.empty() && used.front().substr(0, asked.size()) != asked) {
      text += " (" + asked + " was asked for)";
    }
    parts.push_back(std::move(text));
  }
  std::string text = "  network: " + join(parts, "; ") + "\n";
  if (const auto fallback = network.find("fallback"); fallback != network.end()) {
    const std::string price = text_of(*fallback, "price");
    const std::string remedy = text_of(*fallback, "remedy");
    text += "  FALLBACK: " + text_of(network, "expected") + " was expected" +
            (price.empty() ? "" : "; " + price) + (remedy.empty() ? "" : "; try: " + remedy) + "\n";
  }
  return text;
}

}  // namespace

Story read_story(const journal::Reading& reading) {
  Story story;
  for (const journal::Event& event : reading.events) {
    const Json& context = event.context;
    const int attempt = static_cast<int>(number_of(context, "attempt"));
    if (event.name == "start") {
      story.job_id = text_of(context, "job_id");
      story.machine = text_of(context, "machine");
      story.launcher = text_of(context, "launcher");
    } else if (event.name == "attempt_start") {
      story_of(story, attempt);
    } else if (event.name == "attempt_end") {
      read_attempt_end(context, story_of(story, attempt));
    } else if (event.name == "verdict") {
      read_verdict(context, story_of(story, attempt));
    } else if (event.name == "network") {
      // Told again when a host that differs speaks late: the last word has them all.
      story_of(story, attempt).network = context;
    } else if (event.name == "decision") {
      story_of(story, attempt).decision =
          text_of(context, "action") + ": " + text_of(context, "why");
    } else if (event.name == "swap") {
      story_of(story, attempt)
          .swaps.push_back(
              {text_of(context, "out"), text_of(context, "in"), text_of(context, "provenance")});
    } else if (event.name == "stop") {
      story.stop_reason = text_of(context, "reason");
    }
  }
  if (!reading.events.empty()) {
    story.total_s = reading.events.back().time_s - reading.events.front().time_s;
  }
  sum_up(story);
  return story;
}

std::string tell(const Story& story) {
  std::string text = fmt::format(
      "job {} on {} ({}): {} attempt{}, {}\n", story.job_id, story.machine, story.launcher,
      story.attempts.size(), story.attempts.size() == 1 ? "" : "s", human_duration(story.total_s));
  for (const AttemptStory& attempt : story.attempts) {
    text += fmt::format("\nattempt {}", attempt.attempt);
    if (attempt.ended_s > attempt.started_s) {
      text += ", " + human_duration(attempt.ended_s - attempt.started_s);
    }
    if (attempt.resumed_from) text += fmt::format(", resumed from step {}", *attempt.resumed_from);
    if (attempt.last_step) text += fmt::format(", came to step {}", *attempt.last_step);
    text +=
        "\n  " + (attempt.summary.empty() ? std::string("no verdict recorded") : attempt.summary);
    text += '\n';
    if (attempt.network.is_object()) text += tell_network(attempt.network);
    for (const std::string& line : attempt.evidence) text += "  evidence: " + line + "\n";
    if (!attempt.remedy.empty()) text += "  try: " + attempt.remedy + "\n";
    for (const Swap& swap : attempt.swaps) {
      text += fmt::format("  swapped: {} out ({}), {} in\n", swap.out, swap.provenance, swap.in);
    }
    const bool worth_saying = attempt.swaps.empty() && attempt.verdict != "success";
    if (worth_saying && !attempt.decision.empty()) text += "  " + attempt.decision + "\n";
  }
  text += fmt::format("\nsteps redone: {}\ntime lost:    {}\n", story.steps_redone,
                      human_duration(story.lost_s));
  text += "end:          " +
          (story.stop_reason.empty() ? std::string("not recorded") : story.stop_reason) + "\n";
  return printable_lines(text);
}

Json to_json(const Story& story) {
  Json attempts = Json::array();
  for (const AttemptStory& attempt : story.attempts) {
    Json swaps = Json::array();
    for (const Swap& swap : attempt.swaps) {
      swaps.push_back({{"out", swap.out}, {"in", swap.in}, {"provenance", swap.provenance}});
    }
    attempts.push_back(
        {{"attempt", attempt.attempt},
         {"verdict", attempt.verdict},
         {"summary", attempt.summary},
         {"evidence", attempt.evidence},
         {"decision", attempt.decision},
         {"network", attempt.network},
         {"swaps", swaps},
         {"last_step", attempt.last_step ? Json(*attempt.last_step) : Json(nullptr)},
         {"resumed_from", attempt.resumed_from ? Json(*attempt.resumed_from) : Json(nullptr)},
         {"started_s", attempt.started_s},
         {"ended_s", attempt.ended_s}});
  }
  return {{"job_id", story.job_id},
          {"machine", story.machine},
          {"launcher", story.launcher},
          {"attempts", attempts},
          {"stop_reason", story.stop_reason.empty() ? Json(nullptr) : Json(story.stop_reason)},
          {"steps_redone", story.steps_redone},
          {"lost_s", story.lost_s},
          {"total_s", story.total_s}};
}

}  // namespace ezpz::failover
