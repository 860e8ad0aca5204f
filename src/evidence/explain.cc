#include "evidence/explain.h"
#include "evidence/stream.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "evidence/escapes.h"

namespace ezpz::evidence {
namespace {

constexpr size_t kMaxShown = 400;

std::vector<std::pair<std::string, std::string>> named_groups(
    const Regex& regex, const std::vector<std::string_view>& groups) {
  std::vector<std::pair<std::string, std::string>> captures;
  for (size_t i = 1; i < groups.size(); ++i) {
    if (regex.names()[i].empty() || groups[i].empty()) continue;
    captures.emplace_back(regex.names()[i], printable(groups[i], kMaxShown));
  }
  return captures;
}

// What a fact holds, by the names that examples use.
std::vector<std::pair<std::string, std::string>> fields_of(const Fact& fact) {
  constexpr std::pair<const char*, Field> kShown[] = {
      {"host", Field::host},       {"ranks", Field::ranks},   {"ip", Field::ip},
      {"code", Field::code},       {"signal", Field::signal}, {"reason", Field::reason},
      {"step_id", Field::step_id}, {"seq", Field::seq},
  };
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& [name, field] : kShown) {
    std::string text = describe(fact, field);
    if (!text.empty()) fields.emplace_back(name, printable(text, kMaxShown));
  }
  return fields;
}

// The `unless` that the message holds.
std::string veto(const Entry& entry, std::string_view message) {
  const std::string folded = lower(message);
  for (const std::string& text : entry.spec.unless) {
    if (folded.find(text) != std::string::npos) return text;
  }
  return "";
}

}  // namespace

std::string_view to_string(Fate fate) {
  switch (fate) {
    case Fate::taken:
      return "taken";
    case Fate::no_match:
      return "no match";
    case Fate::vetoed:
      return "vetoed";
    case Fate::lost:
      return "lost";
    case Fate::not_after:
      return "not after";
    case Fate::repeated:
      return "repeated";
  }
  return "";
}

Explainer::Explainer(const Grammar& grammar)
    : tables_(grammar.tables()), matcher_(grammar.tables(), SIZE_MAX) {}

Look Explainer::look(const Entry& entry, std::string_view message, const Outcome& outcome) {
  Look look{&entry, Fate::no_match, "", {}};
  std::vector<std::string_view> groups;
  const Regex& regex = entry.pattern().regex;
  size_t from = 0;
  size_t free_begin = 0;
  size_t free_end = 0;
  const Taken* winner = nullptr;
  // Which network is used stands in lines that tell something else, too (matcher.cc).
  const bool claims = !is_equipment(entry.spec.event);
  while (free_end == 0 && regex.find(message, from, &groups) && !groups[0].empty()) {
    const auto begin = static_cast<size_t>(groups[0].data() - message.data());
    from = begin + groups[0].size();
    if (look.captures.empty()) look.captures = named_groups(regex, groups);
    const auto overlap = std::find_if(taken_.begin(), taken_.end(), [&](const Taken& other) {
      return begin < other.end && other.begin < from;
    });
    if (overlap == taken_.end() || entry.spec.purpose != Purpose::fact || !claims) {
      free_begin = begin;
      free_end = from;
      look.captures = named_groups(regex, groups);
    } else if (winner == nullptr) {
      winner = &*overlap;
    }
  }
  if (from == 0) return look;
  look.why = veto(entry, message);
  if (!look.why.empty()) {
    look.fate = Fate::vetoed;
    return look;
  }
  if (free_end == 0) {
    look.fate = Fate::lost;
    look.why = winner->entry->spec.id;
    return look;
  }
  look.fate = Fate::taken;
  if (entry.spec.purpose != Purpose::fact) return look;
  const auto fact = std::find_if(outcome.facts.begin(), outcome.facts.end(),
                                 [&](const Fact& f) { return f.pattern == entry.spec.id; });
  if (fact == outcome.facts.end()) {
    look.fate = entry.spec.only_after.empty() ? Fate::repeated : Fate::not_after;
    look.why = join(entry.spec.only_after, ", ");
    return look;
  }
  for (auto& field : fields_of(*fact)) {
    const auto known = std::find_if(look.captures.begin(), look.captures.end(), [&](auto& capture) {
      return capture.first == field.first || capture.first + "s" == field.first;
    });
    // What it took from a preface, or from the line's label.
    if (known == look.captures.end()) look.captures.push_back(std::move(field));
  }
  if (claims) taken_.push_back({free_begin, free_end, &entry});
  return look;
}

void Explainer::look_at_message(std::string_view message, const Outcome& outcome) {
  std::set<uint16_t> entries;
  tables_.prefilter.scan(message, [&](size_t, int literal) {
    const LiteralUse& use = tables_.uses[static_cast<size_t>(literal)];
    entries.insert(use.entries.begin(), use.entries.end());
  });
  taken_.clear();
  for (const uint16_t entry : entries) {
    explanation_.looks.push_back(look(tables_.entries[entry], message, outcome));
  }
}

const Explanation* Explainer::explain(std::string_view segment, int64_t line) {
  strip_escapes(segment, &stripped_);
  std::vector<size_t> starts;
  bool triggered = false;
  tables_.prefilter.scan(stripped_, [&](size_t at, int literal) {
    const LiteralUse& use = tables_.uses[static_cast<size_t>(literal)];
    triggered = triggered || !use.entries.empty();
    if (use.speaker) starts.push_back(at);
  });
  if (!triggered) return nullptr;

  const std::string_view clean = stripped_;
  explanation_ = Explanation();
  explanation_.text = printable(clean, kMaxShown);
  const Outcome& outcome = matcher_.match(stripped_, line);
  explanation_.facts = outcome.facts;
  Origin origin;
  size_t begin = read_labels(tables_.labels, clean, &origin);
  explanation_.label_host = origin.host;
  explanation_.label_ranks = origin.ranks;
  std::sort(starts.begin(), starts.end());
  starts.push_back(clean.size());
  for (const size_t next : starts) {
    if (next <= begin) continue;
    look_at_message(clean.substr(begin, next - begin), outcome);
    begin = next;
  }
  return &explanation_;
}

}  // namespace ezpz::evidence
