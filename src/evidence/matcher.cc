#include "evidence/matcher.h"

#include <algorithm>

#include "base/hostlist.h"
#include "base/text.h"

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

}  // namespace

std::string_view Matcher::find_hits(std::string_view segment) {
  hits_.clear();
  bool dirty = false;
  const auto add = [&](size_t at, int literal) {
    if (literal == Prefilter::kDirty) {
      dirty = true;
    } else {
      hits_.push_back({at, static_cast<size_t>(literal)});
    }
  };
  tables_.prefilter.scan(segment, add);
  if (!dirty) return segment;
  hits_.clear();
  strip_escapes(segment, &stripped_);
  tables_.prefilter.scan(stripped_, add);
  return stripped_;
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
  if (entry.vetoed(message)) return;
  if (!entry.only_after.empty() &&
      !prefaces_.latest_is_one_of(entry.only_after, entry.after_group, origin, line_)) {
    return;
  }
  if (!entry.not_after.empty() && prefaces_.was_said(entry.not_after, line_)) return;
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
      std::optional<int64_t> step;
      for (const auto& [which, group] : entry.pattern().captures) {
        if (which == Field::step && !groups_[group].empty()) step = number(groups_[group]);
      }
      if (entry.spec.purpose == Purpose::checkpoint) {
        outcome_.checkpoint = true;
        if (step) outcome_.checkpoint_step = step;
      } else if (step) {
        outcome_.resumed_from = step;
      }
      continue;
    }

    const bool overlaps = std::any_of(found_.begin(), found_.end(), [&](const Found& other) {
      return begin < other.end && other.begin < end;
    });
    if (overlaps) continue;

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
    if (!entry.takes_from.empty()) prefaces_.complete(entry.takes_from, origin, line_, &fact);
    // The label says whose output it is, which is whom a program's message is about; a launcher's
    // message may come out under anybody's label.
    if (fact.event == Event::message && fact.host.empty() && hosts.empty() && fact.ranks.empty()) {
      fact.ranks = origin.ranks;
    }
    const bool said = std::any_of(unordered_.begin(), unordered_.end(),
                                  [&](const Fact& other) { return repeats(other, fact); });
    if (said && hosts.empty()) continue;
    const Found found{begin, end, unordered_.size(), std::max<size_t>(hosts.size(), 1)};
    if (hosts.empty()) {
      unordered_.push_back(std::move(fact));
    } else {
      for (std::string& host : hosts) {
        fact.host = std::move(host);
        unordered_.push_back(fact);
      }
    }
    found_.push_back(found);
  }
}

std::span<const Matcher::Hit> Matcher::hits_in(size_t begin, size_t end) const {
  const auto before = [](const Hit& hit, size_t at) { return hit.at < at; };
  const auto first = std::lower_bound(hits_.begin(), hits_.end(), begin, before);
  return {first, std::lower_bound(first, hits_.end(), end, before)};
}

void Matcher::match_message(std::string_view clean, size_t begin, size_t end,
                            const Origin& origin) {
  triggered_.clear();
  for (const Hit& hit : hits_in(begin, end)) {
    for (const uint16_t entry : tables_.uses[hit.literal].entries) triggered_.push_back(entry);
  }
  std::sort(triggered_.begin(), triggered_.end());
  triggered_.erase(std::unique(triggered_.begin(), triggered_.end()), triggered_.end());
  found_.clear();
  unordered_.clear();
  for (const size_t entry : triggered_) {
    match_entry(entry, clean.substr(begin, end - begin), origin);
  }
  std::sort(found_.begin(), found_.end(),
            [](const Found& a, const Found& b) { return a.begin < b.begin; });
  for (const Found& found : found_) {
    for (size_t i = 0; i < found.facts; ++i) {
      outcome_.facts.push_back(std::move(unordered_[found.first_fact + i]));
    }
  }
}

void Matcher::find_step(std::string_view clean, size_t begin, size_t end) {
  const std::string_view text = clean.substr(0, end);
  for (const Hit& hit : hits_in(begin, end)) {
    const LiteralUse& use = tables_.uses[hit.literal];
    std::optional<Step> step;
    if (use.step_key) step = tables_.progress.at_key(text, hit.at);
    if (use.bar && !step) step = tables_.progress.at_bar(text, hit.at);
    if (step && (!outcome_.step || step->preference < outcome_.step->preference)) {
      outcome_.step = step;
    }
  }
}

const Outcome& Matcher::match(std::string_view segment, int64_t line) {
  outcome_ = Outcome();
  line_ = line;
  const std::string_view clean = find_hits(segment);
  const bool only_progress = std::all_of(hits_.begin(), hits_.end(), [&](const Hit& hit) {
    return tables_.uses[hit.literal].only_progress();
  });
  if (only_progress) {
    find_step(clean, 0, clean.size());
    return outcome_;
  }

  std::stable_sort(hits_.begin(), hits_.end(),
                   [](const Hit& a, const Hit& b) { return a.at < b.at; });
  Origin origin;
  size_t begin = read_labels(tables_.labels, clean, &origin);
  outcome_.label_host = origin.host;
  outcome_.label_ranks = origin.ranks;
  bool spoken = false;  // the message at begin is a launcher's: a "step" in it is no training step
  std::vector<size_t> starts;
  for (const Hit& hit : hits_) {
    if (tables_.uses[hit.literal].speaker && hit.at >= begin) starts.push_back(hit.at);
  }
  starts.push_back(clean.size());
  for (const size_t next : starts) {
    if (next > begin) {
      match_message(clean, begin, next, origin);
      if (!spoken) find_step(clean, begin, next);
    }
    begin = next;
    spoken = true;
  }
  // A line about a checkpoint tells that step's number, which may lie behind the training's.
  if (outcome_.checkpoint || outcome_.resumed_from) outcome_.step.reset();
  return outcome_;
}

}  // namespace ezpz::evidence
