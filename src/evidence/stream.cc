#include "evidence/stream.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "evidence/escapes.h"
#include "evidence/fact_store.h"
#include "evidence/grammar_tables.h"
#include "evidence/lines.h"
#include "evidence/matcher.h"
#include "evidence/survey.h"

namespace ezpz::evidence {
namespace {

constexpr std::string_view kDigits = "0123456789";

constexpr int kGaps = 2;  // between steps, that progress.interval is made of
// Hits that open no group by themselves but belong to one that opens in their segment.
constexpr size_t kMaxPending = 32;
// What every rank says of its equipment, on many channels, is not listened to for ever.
constexpr int kHeardEnough = 1 << 16;

bool ends_a_run(const Fact& fact) {
  switch (fact.event) {
    case Event::new_run:
    case Event::node_lost:
    case Event::teardown:
    case Event::limit:
      return true;
    case Event::death:
      return fact.role == Role::cause;
    default:
      return fact.role == Role::cause && fact.kind == Kind::oom;
  }
}

}  // namespace

// How the bytes go through. A chunk is cut into: the end of the segment that earlier chunks began
// (joined in `carry`), a block of whole segments, and the beginning of the next one (to `carry`).
// A block is stripped of escapes, if it holds any, and scanned once for literals. The hits of one
// segment form a group and go to the Matcher. Only then is it needed where the segment begins and
// which line that is, so both are found out lazily. So are the steps: of a block only the last one
// counts, and those before a checkpoint or a progress bar.
struct Stream::State {
  explicit State(const Grammar& grammar)
      : tables(grammar.tables()),
        matcher(grammar.tables()),
        store(kMaxFacts),
        heard(grammar.tables().entries.size()) {}

  void feed(std::string_view bytes);
  void finish();
  void note(Fact fact);

  void add_to_carry(std::string_view bytes);
  void end_carry(char separator);
  void whole_segment(std::string_view segment);

  // The block being looked at: [begin, end) is [raw, raw_end) without escapes.
  void block(std::string_view bytes);
  void add_hit(size_t at, size_t literal);
  void open_group(const char* where);
  void close_group();
  void count_to(const char* to);
  void steps_to(const char* to);
  [[nodiscard]] std::string_view segment_around(const char* where) const;

  void match(std::string_view segment, const std::vector<Hit>& found);
  void add_step(const Step& step);
  void note_end(const Fact& fact);
  void place(const Fact& fact);

  const Grammar::Tables& tables;
  Matcher matcher;
  FactStore store;
  std::vector<int> heard;  // by entry: words about the equipment that were no news
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
  // The latest sign that a run ended, or that another began, and what was trained behind it.
  struct End {
    int64_t line = 0;
    bool another_began = false;           // somebody says so
    std::optional<int64_t> first_behind;  // printed first behind it
  };
  std::optional<End> run_end;
  std::optional<int64_t> step_before;  // for progress.interval
  int gaps = 0;

  std::string stripped;
  const char* begin = nullptr;
  const char* end = nullptr;
  const char* raw = nullptr;
  const char* raw_end = nullptr;
  const char* counted = nullptr;      // `line` and `line_start` hold for this place
  const char* raw_counted = nullptr;  // which is this one in the raw block
  const char* boundary = nullptr;     // no segment that is still to come begins before it
  const char* stepped = nullptr;      // the steps before it are known

  const char* group_begin = nullptr;
  const char* group_end = nullptr;  // the separator that ends the group's segment
  std::vector<Hit> group;           // relative to group_begin
  std::vector<Hit> pending;         // relative to begin
  const char* lost = nullptr;       // a hit that was dropped from pending
};

// What follows a run's end is another run when somebody says so (or that training resumes) and a
// step is printed.
void Stream::State::note_end(const Fact& fact) {
  const bool requeued = fact.event == Event::limit && fact.reason == "JOB REQUEUE";
  const bool said = fact.event == Event::new_run || requeued;
  // Before another run's first step all belongs to one end.
  if (run_end && !run_end->first_behind) {
    run_end->line = fact.line;
    run_end->another_began = run_end->another_began || said;
    return;
  }
  run_end = End{fact.line, said, {}};
}

void Stream::State::add_step(const Step& step) {
  // A shorter bar inside the training's own (an evaluation) tells nothing about the training.
  if (step.bar_total) {
    if (*step.bar_total < largest_bar) return;
    largest_bar = *step.bar_total;
  }
  if (run_end) {
    // Survivors may print a few more, and lines that lay in a buffer come late.
    constexpr int64_t kIntervals = 10;
    if (!run_end->first_behind) run_end->first_behind = step.value;
    const int64_t trained = step.value - *run_end->first_behind;
    if (trained >= kIntervals * progress.interval.value_or(1))
      progress.survived_line = run_end->line;
    if (run_end->another_began) progress.earlier_runs_end = run_end->line;
  }
  if (!progress.first_step) progress.first_step = step.value;
  progress.last_step = step.value;
  progress_changed = true;
  if (gaps == kGaps || step.value == step_before) return;
  if (step_before) {
    ++gaps;
    progress.interval =
        std::max(progress.interval.value_or(1), std::abs(step.value - *step_before));
  }
  step_before = step.value;
}

void Stream::State::place(const Fact& fact) {
  if (fact.event != Event::placement || fact.host.empty()) return;
  for (const int rank : fact.ranks) topology.place(rank, fact.host);
}

void Stream::State::note(Fact fact) {
  place(fact);
  store.add(std::move(fact));
}

// One whole segment, of the line `line` that starts at `line_start`; in a block it begins at
// group_begin.
void Stream::State::match(std::string_view segment, const std::vector<Hit>& found) {
  const Outcome& outcome = matcher.match(segment, found, line);
  for (size_t i = 0; i < outcome.facts.size(); ++i) {
    Fact fact = outcome.facts[i];
    fact.line = line;
    fact.offset = line_start;
    place(fact);
    const bool settled = store.is_settled(fact.pattern);
    if (fact.role == Role::cause && !settled) {
      if (group_begin != nullptr) steps_to(group_begin);
      fact.step = progress.last_step.value_or(-1);
    }
    if (!settled && ends_a_run(fact)) {
      if (group_begin != nullptr) steps_to(group_begin);
      note_end(fact);
    }
    const Fact* kept = store.add(std::move(fact));
    if (kept != nullptr && on_fact) {
      const Fact told = *kept;  // a copy: who hears it may note a fact, and the store then moves
      on_fact(told);
    }
    const bool heard_before =
        kept == nullptr && is_equipment(tables.entries[outcome.origin[i]].spec.event);
    if (settled || (heard_before && ++heard[outcome.origin[i]] == kHeardEnough)) {
      matcher.retire(outcome.origin[i]);
    }
  }
  for (const Outcome::Member& member : outcome.members) {
    topology.place_in_group(member.rank, member.size, member.host);
  }
  if (!outcome.facts.empty() && !outcome.label_host.empty() && outcome.label_ranks.size() == 1) {
    topology.place_by_label(outcome.label_ranks[0], outcome.label_host);
  }
  if (outcome.world_size) topology.set_world_size(*outcome.world_size);
  if (outcome.checkpoint) {
    if (!outcome.checkpoint_step && group_begin != nullptr) steps_to(group_begin);
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
    if (run_end) {
      // Not what survivors printed meanwhile, but the next step is the new run's.
      if (!run_end->another_began) run_end->first_behind.reset();
      run_end->another_began = true;
    }
  }
}

// A segment that is in no block.
void Stream::State::whole_segment(std::string_view segment) {
  segment = segment.substr(0, kMaxLine);
  if (holds_dirty(segment)) {
    strip_escapes(segment, kMaxLine, &stripped);
    segment = stripped;
  }
  group = matcher.hits_in(segment);
  match(segment, group);
  if (const std::optional<Step> step = matcher.step(segment, group)) add_step(*step);
}

void Stream::State::count_to(const char* to) {
  const Newlines newlines = count_newlines(counted, to);
  line += newlines.count;
  if (newlines.count > 0) {
    raw_counted =
        raw == begin ? newlines.last + 1 : behind_newline(raw_counted, raw_end, newlines.count);
    line_start = bytes_fed + (raw_counted - raw);
  }
  counted = to;
}

std::string_view Stream::State::segment_around(const char* where) const {
  const char* const start = segment_start(stepped, where);
  const char* const stop = find_separator(where, end);
  return {start, std::min(kMaxLine, static_cast<size_t>(stop - start))};
}

// Brings the progress up to the segments before `to`, where one begins or the block ends.
void Stream::State::steps_to(const char* to) {
  std::string_view segment;
  // What is no step by its own looks needs no closer one.
  const auto may_be_step = [&](const char* key) {
    const bool same = key >= segment.data() && key < segment.data() + segment.size();
    if (!same) segment = segment_around(key);
    const auto at = static_cast<size_t>(key - segment.data());
    if (at >= segment.size()) return false;
    if (tables.progress.at_key(segment, at)) return true;
    // Another message may begin right behind the number ("step=4srun: error"): then what follows it
    // is no objection.
    const size_t number = segment.find_first_of(kDigits, at);
    const size_t behind = segment.find_first_not_of(kDigits, std::min(number, segment.size()));
    return behind < segment.size() &&
           tables.progress.at_key(segment.substr(0, behind), at).has_value();
  };
  // Until the interval is known every step counts, and so does the first behind a run's end.
  const auto each_counts = [&] { return gaps < kGaps || (run_end && !run_end->first_behind); };
  if (each_counts() && stepped < to) {
    const char* const from = stepped;
    tables.steps.forward({from, static_cast<size_t>(to - from)}, [&](size_t at) {
      const char* const key = from + at;
      if (key < stepped || !may_be_step(key)) return false;
      if (const std::optional<Step> step = matcher.step(segment)) add_step(*step);
      stepped = find_separator(key, end);
      return !each_counts();
    });
    if (each_counts()) stepped = to;
  }
  if (stepped < to) {
    const char* const from = stepped;
    const char* rejected = to;  // where a segment begins that looked as if it had a step
    tables.steps.backward({from, static_cast<size_t>(to - from)}, [&](size_t at) {
      const char* const key = from + at;
      if (key >= rejected || !may_be_step(key)) return false;
      rejected = segment.data();
      const std::optional<Step> step = matcher.step(segment);
      if (step) add_step(*step);
      return step.has_value();
    });
  }
  stepped = std::max(stepped, to);
}

// The segment around `where` becomes the group.
void Stream::State::open_group(const char* where) {
  group_begin = segment_start(boundary, where);
  group_end = find_separator(where, end);
  group.clear();
  for (const Hit& hit : pending) {
    if (begin + hit.at >= group_begin) {
      group.push_back({hit.at - static_cast<size_t>(group_begin - begin), hit.literal});
    }
  }
  pending.clear();
}

void Stream::State::add_hit(size_t at, size_t literal) {
  const char* const where = begin + at;
  if (group_end != nullptr && where > group_end) close_group();
  if (group_end == nullptr) {
    if (!matcher.interesting(literal)) {
      if (pending.size() == kMaxPending) {
        lost = begin + pending.back().at;
        pending.clear();
      }
      pending.push_back({at, literal});
      return;
    }
    open_group(where);
  }
  const auto in_group = static_cast<size_t>(where - group_begin);
  if (in_group < kMaxLine) group.push_back({in_group, literal});
}

void Stream::State::close_group() {
  const auto length = static_cast<size_t>(group_end - group_begin);
  const std::string_view segment(group_begin, std::min(length, kMaxLine));
  const bool some_lost = lost != nullptr && lost >= group_begin;
  if (length > kMaxLine || some_lost) group = matcher.hits_in(segment);
  count_to(group_begin);
  match(segment, group);
  const bool bar = std::any_of(group.begin(), group.end(),
                               [&](const Hit& hit) { return tables.uses[hit.literal].bar; });
  if (bar) {
    steps_to(group_begin);
    if (const std::optional<Step> step = matcher.step(segment, group)) add_step(*step);
    stepped = group_end;
  }
  boundary = group_end + 1;
  group_end = nullptr;
}

// bytes are whole segments: they begin where one begins and end behind a separator.
void Stream::State::block(std::string_view bytes) {
  std::string_view text = bytes;
  const Survey seen = survey(bytes);
  const int64_t line_behind = line + seen.newlines;
  if (seen.dirty) {
    strip_escapes(bytes, kMaxLine, &stripped);
    text = stripped;
  }
  raw = raw_counted = bytes.data();
  raw_end = raw + bytes.size();
  begin = counted = boundary = stepped = text.data();
  end = begin + text.size();
  pending.clear();
  lost = nullptr;
  tables.prefilter.scan(text,
                        [&](size_t at, int literal) { add_hit(at, static_cast<size_t>(literal)); });
  if (group_end != nullptr) close_group();
  steps_to(end);
  group_begin = nullptr;
  if (line != line_behind) {
    line = line_behind;
    line_start = bytes_fed + static_cast<int64_t>(bytes.rfind('\n')) + 1;
  }
  bytes_fed += static_cast<int64_t>(bytes.size());
}

void Stream::State::add_to_carry(std::string_view bytes) {
  carrying = true;
  carry.append(bytes.substr(0, kMaxLine - std::min(kMaxLine, carry.size())));
  bytes_fed += static_cast<int64_t>(bytes.size());
}

void Stream::State::end_carry(char separator) {
  whole_segment(carry);
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
  whole_segment(carry);
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
