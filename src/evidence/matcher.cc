#include "evidence/matcher.h"

#include <algorithm>

#include "base/hostlist.h"
#include "base/text.h"
#include "evidence/escapes.h"
#include "evidence/source_host.h"

namespace ezpz::evidence {
namespace {

constexpr size_t kMaxText = 400;
constexpr size_t kMaxMatchesPerEntry = 16;  // in one message
constexpr size_t kMaxHostsPerMessage = 1024;

// The part of a message that a person should see, at most kMaxText bytes.
std::string shown(std::string_view message, size_t match_begin, size_t match_end) {
  if (message.size() > kMaxText && match_end > kMaxText) message.remove_prefix(match_begin);
  message = trim(message);
  // printable() marks a cut with three dots of its own.
  return printable(message, message.size() > kMaxText ? kMaxText - 3 : kMaxText);
}

std::optional<int64_t> number(std::string_view text) {
  const std::optional<long> value = parse_int(text);
  if (!value || *value < 0) return std::nullopt;
  return *value;
}

void set_field(Fact* fact, Field which, std::string_view text) {
  switch (which) {
    case Field::host:
      fact->host = text;
      break;
    case Field::ranks:
      fact->ranks = parse_ranks(text);
      break;
    case Field::ip:
      fact->ip = text;
      break;
    case Field::code:
      fact->code = static_cast<int>(std::min<int64_t>(number(text).value_or(-1), 1 << 16));
      break;
    case Field::signal:
      fact->signal = parse_signal(text);
      break;
    case Field::reason:
      fact->reason = printable(trim(text), kMaxText - 3);
      break;
    case Field::step_id:
      fact->step_id = text;
      break;
    case Field::seq:
      fact->seq = number(text).value_or(-1);
      break;
    case Field::hosts:
    case Field::step:
    case Field::world_size:
    case Field::last_rank:
    case Field::nranks:
      break;
  }
}

// The same thing said twice in one message.
bool repeats(const Fact& a, const Fact& b) {
  return a.pattern == b.pattern && a.host == b.host && a.ranks == b.ranks && a.ip == b.ip &&
         a.code == b.code && a.signal == b.signal && a.reason == b.reason &&
         a.step_id == b.step_id && a.seq == b.seq;
}

std::optional<int> world_size(Field which, std::string_view text) {
  const std::optional<int64_t> value = number(text);
  if (!value || *value > (1 << 24)) return std::nullopt;
  if (which == Field::world_size) return static_cast<int>(*value);
  if (which == Field::last_rank) return static_cast<int>(*value) + 1;
  return std::nullopt;
}

// Hits of [begin, end), which are sorted.
std::span<const Hit> between(std::span<const Hit> hits, size_t begin, size_t end) {
  const auto before = [](const Hit& hit, size_t at) { return hit.at < at; };
  const auto first = std::lower_bound(hits.begin(), hits.end(), begin, before);
  return {first, std::lower_bound(first, hits.end(), end, before)};
}

}  // namespace

Matcher::Matcher(const Grammar::Tables& tables, size_t max_alike)
    : tables_(tables),
      max_alike_(max_alike),
      retired_(tables.entries.size()),
      told_(tables.entries.size()) {
  for (const LiteralUse& use : tables.uses) {
    interesting_.push_back(use.bar || !use.entries.empty() ? 1 : 0);
  }
}

void Matcher::retire(size_t entry) {
  if (retired_[entry] != 0 || !tables_.entries[entry].monotonous()) return;
  retired_[entry] = 1;
  for (size_t i = 0; i < interesting_.size(); ++i) {
    const LiteralUse& use = tables_.uses[i];
    const bool all_retired = std::all_of(use.entries.begin(), use.entries.end(),
                                         [&](uint16_t each) { return retired_[each] != 0; });
    interesting_[i] = use.bar || !all_retired ? 1 : 0;
  }
}

const std::vector<Hit>& Matcher::hits_in(std::string_view segment) {
  scanned_.clear();
  tables_.prefilter.scan(segment, [&](size_t at, int literal) {
    scanned_.push_back({at, static_cast<size_t>(literal)});
  });
  return scanned_;
}

void Matcher::note_position(const Entry& entry, Outcome* outcome) const {
  std::optional<int64_t> step;
  for (const auto& [which, group] : entry.pattern().captures) {
    if (which == Field::step && !groups_[group].empty()) step = number(groups_[group]);
  }
  if (entry.spec.purpose == Purpose::checkpoint) {
    outcome->checkpoint = true;
    if (step) outcome->checkpoint_step = step;
  } else if (step) {
    outcome->resumed_from = step;
  }
}

// Of the groups just found by a communicator's entry.
void Matcher::note_member(const Entry& entry, const Origin& origin) {
  constexpr int64_t kMostRanks = int64_t{1} << 24;
  std::string host = origin.host;
  std::vector<int> ranks;
  int64_t size = 0;
  for (const auto& [which, group] : entry.pattern().captures) {
    if (groups_[group].empty()) continue;
    if (which == Field::host) host = groups_[group];
    if (which == Field::ranks) ranks = parse_ranks(groups_[group]);
    if (which == Field::nranks) size = number(groups_[group]).value_or(0);
  }
  if (ranks.size() != 1 || host.empty() || size <= 0 || size > kMostRanks) return;
  outcome_.members.push_back({ranks[0], static_cast<int>(size), std::move(host)});
}

void Matcher::match_entry(size_t index, std::string_view message, const Origin& origin) {
  const Entry& entry = tables_.entries[index];
  if (!entry.only_after.empty() &&
      !prefaces_.latest_is_one_of(entry.only_after, entry.after_group, origin, line_)) {
    return;
  }
  if (!entry.not_after.empty() && prefaces_.was_said(entry.not_after, line_)) return;
  if (!entry.pattern().regex.matches(message) || entry.vetoed(message)) return;
  size_t from = 0;
  for (size_t n = 0; n < kMaxMatchesPerEntry && entry.pattern().regex.find(message, from, &groups_);
       ++n) {
    const auto begin = static_cast<size_t>(groups_[0].data() - message.data());
    const size_t end = begin + groups_[0].size();
    if (groups_[0].empty()) return;
    from = end;

    if (entry.spec.purpose == Purpose::preface) {
      Fact captured;
      for (const auto& [which, group] : entry.pattern().captures) {
        if (!groups_[group].empty()) set_field(&captured, which, groups_[group]);
      }
      prefaces_.remember(static_cast<uint16_t>(index), entry.spec.group, std::move(captured),
                         origin, line_);
      outcome_.prefaces.push_back(index);
      continue;
    }
    if (entry.spec.purpose == Purpose::communicator) {
      note_member(entry, origin);
      continue;
    }
    if (entry.spec.purpose != Purpose::fact) {
      note_position(entry, &outcome_);
      continue;
    }

    // Which network is used stands in lines that tell something else, too.
    const bool claims = !is_equipment(entry.spec.event);
    const bool overlaps =
        claims && std::any_of(found_.begin(), found_.end(), [&](const Found& other) {
          return other.claims && begin < other.end && other.begin < end;
        });
    if (overlaps) continue;
    if (retired_[index] != 0) {
      found_.push_back({begin, end, 0, 0, claims});
      continue;
    }

    Fact fact;
    fact.pattern = entry.spec.id;
    fact.kind = entry.spec.kind;
    fact.role = entry.spec.role;
    fact.event = entry.spec.event;
    fact.label = origin.host;
    fact.text = shown(message, begin, end);
    std::vector<std::string> hosts;
    for (const auto& [which, group] : entry.pattern().captures) {
      const std::string_view text = groups_[group];
      if (text.empty()) continue;
      set_field(&fact, which, text);
      if (which == Field::hosts) {
        Result<std::vector<std::string>> expanded = expand_hostlist(text);
        hosts = expanded ? *std::move(expanded) : std::vector{std::string(text)};
        hosts.resize(std::min(hosts.size(), kMaxHostsPerMessage));
      }
      if (const std::optional<int> size = world_size(which, text)) outcome_.world_size = size;
    }
    if (entry.spec.signal != 0) fact.signal = entry.spec.signal;
    fact.weak = entry.spec.weak;
    if (!entry.takes_from.empty()) prefaces_.complete(entry.takes_from, origin, line_, &fact);
    if (entry.spec.own_host && fact.host.empty() && hosts.empty()) {
      fact.host = source_host(message, begin);
    }
    // The label says whose output it is, which is whom a program's message is about; a launcher's
    // message may come out under anybody's label.
    if (fact.event == Event::message && fact.host.empty() && hosts.empty() && fact.ranks.empty()) {
      fact.ranks = origin.ranks;
      // "[Rank 5]" in front of a GPU's trouble is the rank whose GPU it is.
      const bool own_trouble = entry.spec.own_host || fact.kind == Kind::gpu_fault;
      if (fact.ranks.empty() && own_trouble) {
        if (const int rank = source_rank(message, begin); rank >= 0) fact.ranks = {rank};
      }
    }
    const bool said = std::any_of(unordered_.begin(), unordered_.end(),
                                  [&](const auto& other) { return repeats(other.first, fact); });
    if (said && hosts.empty()) {
      found_.push_back({begin, end, 0, 0, claims});
      continue;
    }
    const auto number = static_cast<uint16_t>(index);
    const Found found{begin, end, unordered_.size(), std::max<size_t>(hosts.size(), 1), claims};
    if (hosts.empty()) {
      unordered_.emplace_back(std::move(fact), number);
    } else {
      for (std::string& host : hosts) {
        fact.host = std::move(host);
        unordered_.emplace_back(fact, number);
      }
    }
    found_.push_back(found);
    const bool marks_nothing =
        entry.spec.event == Event::message || entry.spec.event == Event::within_host ||
        entry.spec.event == Event::between_hosts || entry.spec.event == Event::waiting;
    const bool blames = entry.spec.role != Role::context || !marks_nothing;
    if (++told_[index] >= max_alike_ && !blames) retire(index);
  }
}

std::span<const Hit> Matcher::ordered(const std::vector<Hit>& hits) {
  ordered_ = hits;
  std::stable_sort(ordered_.begin(), ordered_.end(),
                   [](const Hit& a, const Hit& b) { return a.at < b.at; });
  return ordered_;
}

void Matcher::collect_triggered(std::span<const Hit> hits) {
  triggered_.clear();
  for (const Hit& hit : hits) {
    for (const uint16_t entry : tables_.uses[hit.literal].entries) triggered_.push_back(entry);
  }
  std::sort(triggered_.begin(), triggered_.end());
  triggered_.erase(std::unique(triggered_.begin(), triggered_.end()), triggered_.end());
  // A retired entry matters only to those behind it.
  while (!triggered_.empty() && retired_[triggered_.back()] != 0) triggered_.pop_back();
}

// By the entries in triggered_.
void Matcher::match_message(std::string_view message, const Origin& origin) {
  found_.clear();
  unordered_.clear();
  for (const size_t entry : triggered_) match_entry(entry, message, origin);
  std::sort(found_.begin(), found_.end(),
            [](const Found& a, const Found& b) { return a.begin < b.begin; });
  for (const Found& found : found_) {
    for (size_t i = 0; i < found.facts; ++i) {
      auto& [fact, entry] = unordered_[found.first_fact + i];
      outcome_.facts.push_back(std::move(fact));
      outcome_.origin.push_back(entry);
    }
  }
}

size_t Matcher::read_labels_of(std::string_view segment, Origin* origin) const {
  if (!tables_.any_label || !tables_.any_label->matches_at_start(segment)) return 0;
  return read_labels(tables_.labels, segment, origin);
}

const Outcome& Matcher::match(std::string_view segment, const std::vector<Hit>& unsorted,
                              int64_t line) {
  outcome_ = Outcome();
  line_ = line;
  const std::span<const Hit> hits = ordered(unsorted);
  collect_triggered(hits);
  if (triggered_.empty()) return outcome_;
  Origin origin;
  size_t begin = read_labels_of(segment, &origin);
  outcome_.label_host = origin.host;
  outcome_.label_ranks = origin.ranks;
  starts_.clear();
  for (const Hit& hit : hits) {
    if (!tables_.uses[hit.literal].speaker || hit.at < begin) continue;
    // In quotes it is somebody else who tells of a message.
    const bool quoted = hit.at > begin && std::string_view("\"'`").find(segment[hit.at - 1]) !=
                                              std::string_view::npos;
    if (!quoted) starts_.push_back(hit.at);
  }
  starts_.push_back(segment.size());
  for (const size_t next : starts_) {
    if (next > begin) {
      collect_triggered(between(hits, begin, next));
      match_message(segment.substr(begin, next - begin), origin);
    }
    begin = next;
  }
  return outcome_;
}

const Outcome& Matcher::match(std::string_view segment, int64_t line) {
  if (holds_dirty(segment)) {
    strip_escapes(segment, &stripped_);
    segment = stripped_;
  }
  return match(segment, hits_in(segment), line);
}

bool Matcher::tells_a_checkpoint(std::string_view message, std::span<const Hit> hits) {
  collect_triggered(hits);
  return std::any_of(triggered_.begin(), triggered_.end(), [&](size_t index) {
    const Entry& entry = tables_.entries[index];
    if (entry.spec.purpose != Purpose::checkpoint && entry.spec.purpose != Purpose::resume) {
      return false;
    }
    if (!entry.pattern().regex.matches(message) || entry.vetoed(message)) return false;
    if (entry.spec.purpose == Purpose::checkpoint) return true;
    // A resume without a step tells nothing.
    Outcome resumed;
    size_t from = 0;
    for (size_t n = 0; n < kMaxMatchesPerEntry; ++n) {
      if (!entry.pattern().regex.find(message, from, &groups_) || groups_[0].empty()) break;
      note_position(entry, &resumed);
      from = static_cast<size_t>(groups_[0].data() + groups_[0].size() - message.data());
    }
    return resumed.resumed_from.has_value();
  });
}

std::optional<Step> Matcher::step(std::string_view segment, const std::vector<Hit>& unsorted) {
  const std::span<const Hit> hits = ordered(unsorted);
  const bool only_progress = std::all_of(hits.begin(), hits.end(), [&](const Hit& hit) {
    return tables_.uses[hit.literal].entries.empty() && !tables_.uses[hit.literal].speaker;
  });
  size_t begin = 0;
  size_t end = segment.size();
  if (!only_progress) {
    Origin origin;
    begin = read_labels_of(segment, &origin);
    // A "step" in a launcher's message is no training step.
    const auto speaker = std::find_if(hits.begin(), hits.end(), [&](const Hit& hit) {
      return tables_.uses[hit.literal].speaker && hit.at >= begin;
    });
    if (speaker != hits.end()) end = speaker->at;
  }
  const std::string_view text = segment.substr(0, end);
  std::optional<Step> best;
  const auto offer = [&](const std::optional<Step>& step) {
    if (step && (!best || step->preference < best->preference)) best = step;
  };
  tables_.steps.forward(segment, [&](size_t at) {
    if (at >= begin && at < end) offer(tables_.progress.at_key(text, at));
    return at >= end;
  });
  for (const Hit& hit : between(hits, begin, end)) {
    if (tables_.uses[hit.literal].bar) offer(tables_.progress.at_bar(text, hit.at));
  }
  if (!best || only_progress) return best;
  // A line about a checkpoint tells that step's number, which may lie behind the training's.
  while (begin < segment.size()) {
    const auto next = std::find_if(hits.begin(), hits.end(), [&](const Hit& hit) {
      return tables_.uses[hit.literal].speaker && hit.at > begin;
    });
    const size_t stop = next == hits.end() ? segment.size() : next->at;
    if (tells_a_checkpoint(segment.substr(begin, stop - begin), between(hits, begin, stop))) {
      return std::nullopt;
    }
    begin = stop;
  }
  return best;
}

std::optional<Step> Matcher::step(std::string_view segment) {
  return step(segment, hits_in(segment));
}

}  // namespace ezpz::evidence
