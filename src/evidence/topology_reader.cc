#include "evidence/topology_reader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "evidence/escapes.h"
#include "evidence/grammar_tables.h"
#include "evidence/matcher.h"
#include "evidence/segments.h"

namespace ezpz::evidence {
namespace {

// Entries that may tell where a rank is or how many there are.
bool tells_topology(const Entry& entry) {
  const std::string& regex = entry.spec.regex;
  return entry.spec.purpose == Purpose::preface || entry.spec.purpose == Purpose::communicator ||
         entry.spec.event == Event::placement || entry.spec.event == Event::death ||
         regex.find("<world_size>") != std::string::npos ||
         regex.find("<last_rank>") != std::string::npos;
}

std::vector<std::string> literals_of(const Grammar::Tables& tables) {
  std::set<std::string> literals;
  const auto add = [&](const Entry& entry) {
    for (const std::string& trigger : entry.spec.triggers) literals.insert(lower(trigger));
  };
  for (const Entry& entry : tables.entries) {
    if (tells_topology(entry)) add(entry);
  }
  return {literals.begin(), literals.end()};
}

// Those that tell host and rank.
std::vector<const Label*> placing_labels(const std::vector<Label>& labels) {
  std::vector<const Label*> found;
  for (const Label& label : labels) {
    const auto captures = [&label](Field field) {
      return std::any_of(label.captures.begin(), label.captures.end(),
                         [field](const auto& capture) { return capture.first == field; });
    };
    if (captures(Field::host) && captures(Field::ranks)) found.push_back(&label);
  }
  return found;
}

}  // namespace

struct TopologyReader::State {
  State(const Grammar& grammar, NodeNaming naming)
      : tables(grammar.tables()),
        labels(placing_labels(tables.labels)),
        prefilter(literals_of(tables)),
        matcher(tables),
        placements(std::move(naming)) {}

  struct Labelled {
    std::string host;
    int rank = -1;  // none: no label
  };

  void look(std::string_view segment, int64_t line);
  void look_at_label(std::string_view segment, int64_t line);
  [[nodiscard]] Labelled read_label(std::string_view head);

  const Grammar::Tables& tables;
  const std::vector<const Label*> labels;
  const Prefilter prefilter;
  Matcher matcher;
  Placements placements;
  Segments segments;
  // Lines of one rank begin alike, and a look here is cheaper than a regular expression.
  std::unordered_map<std::string, Labelled> known_heads;
  std::string head;
  std::string stripped;
  std::vector<std::string_view> groups;
};

TopologyReader::State::Labelled TopologyReader::State::read_label(std::string_view text) {
  for (const Label* label : labels) {
    if (!label->regex.find(text, 0, &groups)) continue;
    Labelled found;
    std::vector<int> ranks;
    for (const auto& [which, group] : label->captures) {
      if (which == Field::host) found.host = groups[group];
      if (which == Field::ranks) ranks = parse_ranks(groups[group]);
    }
    if (ranks.size() == 1 && !found.host.empty()) found.rank = ranks[0];
    return found;
  }
  return {};
}

void TopologyReader::State::look_at_label(std::string_view segment, int64_t line) {
  if (labels.empty() || segment.empty()) return;
  constexpr size_t kLongestHead = 300;
  constexpr size_t kMostHeads = size_t{1} << 16;
  const size_t colon = segment.substr(0, kLongestHead).find(": ");
  const std::string_view begin =
      segment.substr(0, colon == std::string_view::npos ? kLongestHead : colon + 2);
  Labelled label;
  if (colon == std::string_view::npos) {
    label = read_label(begin);
  } else {
    head.assign(begin);
    auto known = known_heads.find(head);
    if (known == known_heads.end()) {
      if (known_heads.size() == kMostHeads) known_heads.clear();
      known = known_heads.emplace(head, read_label(head)).first;
    }
    label = known->second;
  }
  if (label.rank >= 0) {
    placements.claim_by_label(label.rank, label.host, line);
  } else {
    placements.unlabelled_line();
  }
}

void TopologyReader::State::look(std::string_view segment, int64_t line) {
  look_at_label(segment, line);
  if (holds_dirty(segment)) {
    strip_escapes(segment, kMaxLine, &stripped);
    segment = stripped;
  }
  bool worth = false;
  prefilter.scan(segment, [&](size_t, int) { worth = true; });
  if (!worth) return;
  const Outcome& outcome = matcher.match(segment, line);
  if (outcome.world_size) placements.world_size(*outcome.world_size, line);
  for (const Fact& fact : outcome.facts) {
    if (fact.event != Event::placement && fact.event != Event::death) continue;
    if (fact.host.empty() || fact.ranks.empty()) continue;
    placements.claim(fact.ranks, fact.host, fact.step_id, line);
  }
  for (const Outcome::Member& member : outcome.members) {
    placements.claim_in_group(member.rank, member.size, member.host, line);
  }
}

TopologyReader::TopologyReader(const Grammar& grammar, NodeNaming naming)
    : state_(std::make_unique<State>(grammar, std::move(naming))) {}
TopologyReader::~TopologyReader() = default;

void TopologyReader::feed(std::string_view bytes) {
  state_->segments.feed(
      bytes, [this](std::string_view segment, int64_t line) { state_->look(segment, line); });
}

void TopologyReader::finish() {
  state_->segments.finish(
      [this](std::string_view segment, int64_t line) { state_->look(segment, line); });
}

Placement TopologyReader::conclude() const { return state_->placements.conclude(); }

}  // namespace ezpz::evidence
