#include "evidence/stream.h"

#include <algorithm>
#include <array>

#include "evidence/fact_store.h"
#include "evidence/grammar_tables.h"
#include "evidence/lines.h"
#include "evidence/matcher.h"

namespace ezpz::evidence {
namespace {

// Where a step can be in the segment being looked at.
struct ProgressHit {
  size_t at;
  bool bar;
};

}  // namespace

// How the bytes go through. A chunk is cut into: the end of the segment that earlier chunks began
// (joined in `carry`), a block of whole segments, and the beginning of the next one (to `carry`).
// A block is scanned once for literals. Consecutive hits in one segment form a group; a group of
// progress keys alone is read in place, any other group's segment goes to the Matcher. Only then is
// it needed where the segment begins and which line that is, so both are found out lazily.
struct Stream::State {
  explicit State(const Grammar& grammar)
      : tables(grammar.tables()), matcher(grammar.tables()), store(kMaxFacts) {}

  void feed(std::string_view bytes);
  void finish();
  void note(Fact fact);

  void add_to_carry(std::string_view bytes);
  void end_carry(char separator);
  void block(std::string_view bytes);
  void match(std::string_view segment);
  void add_step(const Step& step);
  void place(const Fact& fact);

  const Grammar::Tables& tables;
  Matcher matcher;
  FactStore store;
  Progress progress;
  Topology topology;
  OnFact on_fact;
  OnProgress on_progress;

  int64_t bytes_fed = 0;   // before the part being looked at
  int64_t line = 1;        // number of the line being looked at
  int64_t line_start = 0;  // and its offset
  std::string carry;       // the unfinished segment, at most kMaxLine bytes of it
  bool carrying = false;   // it has begun (it may be all dropped or empty)
  bool finished = false;
  bool progress_changed = false;
  int64_t largest_bar = 0;
};

void Stream::State::add_step(const Step& step) {
  // A shorter bar inside the training's own (an evaluation) tells nothing about the training.
  if (step.bar_total) {
    if (*step.bar_total < largest_bar) return;
    largest_bar = *step.bar_total;
  }
  if (!progress.first_step) progress.first_step = step.value;
  progress.last_step = step.value;
  ++progress.steps_seen;
  progress_changed = true;
}

void Stream::State::place(const Fact& fact) {
  if (fact.event != Event::placement || fact.host.empty()) return;
  for (const int rank : fact.ranks) topology.place(rank, fact.host);
}

void Stream::State::note(Fact fact) {
  place(fact);
  store.add(std::move(fact));
}

// One whole segment, of the line `line` that starts at `line_start`.
void Stream::State::match(std::string_view segment) {
  const Outcome& outcome = matcher.match(segment.substr(0, kMaxLine), line);
  for (const Fact& found : outcome.facts) {
    Fact fact = found;
    fact.line = line;
    fact.offset = line_start;
    place(fact);
    const Fact* kept = store.add(std::move(fact));
    if (kept != nullptr && on_fact) on_fact(*kept);
  }
  for (const Outcome::Member& member : outcome.members) {
    topology.place_in_group(member.rank, member.size, member.host);
  }
  if (!outcome.facts.empty() && !outcome.label_host.empty() && outcome.label_ranks.size() == 1) {
    topology.place_by_label(outcome.label_ranks[0], outcome.label_host);
  }
  if (outcome.world_size) topology.set_world_size(*outcome.world_size);
  if (outcome.step) add_step(*outcome.step);
  if (outcome.checkpoint) {
    const std::optional<int64_t> step =
        outcome.checkpoint_step ? outcome.checkpoint_step : progress.last_step;
    if (step) {
      progress.last_checkpoint = step;
      progress_changed = true;
    }
  }
  if (outcome.resumed_from) {
    progress.resumed_from = outcome.resumed_from;
    progress_changed = true;
  }
}

// bytes are whole segments: they begin where one begins and end behind a separator.
void Stream::State::block(std::string_view bytes) {
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();
  const char* counted = begin;   // `line` and `line_start` hold for this place
  const char* boundary = begin;  // no segment that is still to come begins before it
  const auto count_to = [&](const char* to) {
    const Newlines newlines = count_newlines(counted, to);
    line += newlines.count;
    if (newlines.last != nullptr) line_start = bytes_fed + (newlines.last + 1 - begin);
    counted = to;
  };

  const char* group_end = nullptr;  // the separator that ends the group's segment
  bool needs_matcher = false;
  size_t progress_hits = 0;
  std::array<ProgressHit, 16> hits;
  const auto close_group = [&] {
    // Far from the last known place the segment may be longer than kMaxLine: let match() see.
    if (static_cast<size_t>(group_end - boundary) > kMaxLine) needs_matcher = true;
    if (needs_matcher) {
      const char* const start = segment_start(boundary, group_end);
      count_to(start);
      match({start, static_cast<size_t>(group_end - start)});
    } else {
      const std::string_view text(boundary, static_cast<size_t>(group_end - boundary));
      std::optional<Step> best;
      for (size_t i = 0; i < progress_hits; ++i) {
        const size_t at = hits[i].at - static_cast<size_t>(boundary - begin);
        const std::optional<Step> step =
            hits[i].bar ? tables.progress.at_bar(text, at) : tables.progress.at_key(text, at);
        if (step && (!best || step->preference < best->preference)) best = step;
      }
      if (best) add_step(*best);
    }
    boundary = group_end + 1;
    group_end = nullptr;
  };

  tables.prefilter.scan(bytes, [&](size_t at, int literal) {
    const char* const where = begin + at;
    if (group_end != nullptr) {
      if (where > group_end) {
        close_group();
      } else if (needs_matcher) {
        return;
      }
    }
    if (group_end == nullptr) {
      group_end = find_separator(where, end);
      needs_matcher = false;
      progress_hits = 0;
    }
    if (literal == Prefilter::kDirty) {
      needs_matcher = true;
      return;
    }
    const LiteralUse& use = tables.uses[static_cast<size_t>(literal)];
    if (!use.only_progress() || progress_hits == hits.size()) {
      needs_matcher = true;
      return;
    }
    hits[progress_hits++] = {at, use.bar};
  });
  if (group_end != nullptr) close_group();
  count_to(end);
  bytes_fed += static_cast<int64_t>(bytes.size());
}

void Stream::State::add_to_carry(std::string_view bytes) {
  carrying = true;
  carry.append(bytes.substr(0, kMaxLine - std::min(kMaxLine, carry.size())));
  bytes_fed += static_cast<int64_t>(bytes.size());
}

void Stream::State::end_carry(char separator) {
  match(carry);
  carry.clear();
  carrying = false;
  ++bytes_fed;
  if (separator == '\n') {
    ++line;
    line_start = bytes_fed;
  }
}

void Stream::State::feed(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  if (carrying && at != end) {
    const char* const separator = find_separator(at, end);
    add_to_carry({at, static_cast<size_t>(separator - at)});
    if (separator == end) return;
    end_carry(*separator);
    at = separator + 1;
  }
  // Blocks that fit the second-level cache: each is read twice, for literals and for newlines.
  constexpr ptrdiff_t kBlock = ptrdiff_t{128} * 1024;
  while (at != end) {
    const char* cut = segment_start(at, at + std::min(kBlock, end - at));
    if (cut == at) {
      // A segment longer than a block.
      const char* const separator = find_separator(at, end);
      if (separator == end) break;
      cut = separator + 1;
    }
    block({at, static_cast<size_t>(cut - at)});
    at = cut;
  }
  if (at != end) add_to_carry({at, static_cast<size_t>(end - at)});
}

void Stream::State::finish() {
  if (finished) return;
  finished = true;
  if (!carrying) return;
  match(carry);
  carry.clear();
  carrying = false;
}

Stream::Stream(const Grammar& grammar) : state_(std::make_unique<State>(grammar)) {}
Stream::~Stream() = default;

void Stream::on_fact(OnFact callback) { state_->on_fact = std::move(callback); }
void Stream::on_progress(OnProgress callback) { state_->on_progress = std::move(callback); }

void Stream::feed(std::string_view bytes) {
  state_->progress_changed = false;
  state_->feed(bytes);
  if (state_->progress_changed && state_->on_progress) state_->on_progress(state_->progress);
}

void Stream::note(Fact fact) { state_->note(std::move(fact)); }

void Stream::finish() {
  state_->progress_changed = false;
  state_->finish();
  if (state_->progress_changed && state_->on_progress) state_->on_progress(state_->progress);
}

const std::vector<Fact>& Stream::facts() const { return state_->store.facts(); }
const Progress& Stream::progress() const { return state_->progress; }
const Topology& Stream::topology() const { return state_->topology; }
int64_t Stream::bytes() const { return state_->bytes_fed; }
int64_t Stream::lines() const {
  const bool unfinished = state_->bytes_fed > state_->line_start;
  return state_->line - 1 + (unfinished ? 1 : 0);
}

}  // namespace ezpz::evidence
