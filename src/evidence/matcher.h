// What one segment (a line, or one state of a progress bar) says: its label off, split into
// messages, each looked at by the entries that it triggers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fact.h"
#include "evidence/grammar_tables.h"
#include "evidence/prefaces.h"

namespace ezpz::evidence {

// A literal of the prefilter, found in a segment.
struct Hit {
  size_t at;
  size_t literal;
};

struct Outcome {
  std::vector<Fact> facts;       // line, offset and time are the caller's to fill in
  std::vector<uint16_t> origin;  // the entry of each fact
  std::optional<int> world_size;
  bool checkpoint = false;  // a checkpoint was saved: at this step, or at the last one printed
  std::optional<int64_t> checkpoint_step;
  std::optional<int64_t> resumed_from;
  struct Member {
    int rank;
    int size;  // of the communicator
    std::string host;
  };
  std::vector<Member> members;
  std::string label_host;  // what the line's label said of its source
  std::vector<int> label_ranks;
  std::vector<size_t> prefaces;  // entries, found and remembered for later lines
};

// How many facts of a message are kept that blames nobody and names no host.
constexpr size_t kMaxAlike = 32;

// Reuses its buffers and remembers prefaces: one for each stream. Segments that come with their
// hits are without escapes.
class Matcher {
 public:
  explicit Matcher(const Grammar::Tables& tables, size_t max_alike = kMaxAlike);

  // What the segment's hits trigger, apart from steps. `line` is its place in the log. The result
  // is valid until the next call.
  const Outcome& match(std::string_view segment, const std::vector<Hit>& hits, int64_t line);
  // The same for a segment as it stands in the log.
  const Outcome& match(std::string_view segment, int64_t line);
  // The training step the segment tells.
  std::optional<Step> step(std::string_view segment, const std::vector<Hit>& hits);
  std::optional<Step> step(std::string_view segment);

  // All hits in a segment. The result is valid until the next call.
  const std::vector<Hit>& hits_in(std::string_view segment);

  // A segment with no other literals needs no match().
  [[nodiscard]] bool interesting(size_t literal) const { return interesting_[literal] != 0; }
  // No further fact of this entry can be of use. What it matches is still taken from the entries
  // that come after it.
  void retire(size_t entry);

 private:
  struct Found {
    size_t begin;
    size_t end;
    size_t first_fact;
    size_t facts;
    bool claims;  // its text is nobody else's
  };

  size_t read_labels_of(std::string_view segment, Origin* origin) const;
  std::span<const Hit> ordered(const std::vector<Hit>& hits);
  void collect_triggered(std::span<const Hit> hits);
  void match_message(std::string_view message, const Origin& origin);
  void note_member(const Entry& entry, const Origin& origin);
  void match_entry(size_t entry, std::string_view message, const Origin& origin);
  void note_position(const Entry& entry, Outcome* outcome) const;
  [[nodiscard]] bool tells_a_checkpoint(std::string_view message, std::span<const Hit> hits);

  const Grammar::Tables& tables_;
  size_t max_alike_;
  Outcome outcome_;
  std::vector<char> retired_;      // by entry
  std::vector<char> interesting_;  // by literal
  std::vector<size_t> told_;       // by entry: facts so far
  std::string stripped_;
  std::vector<Hit> scanned_;
  std::vector<Hit> ordered_;
  std::vector<size_t> starts_;
  std::vector<size_t> triggered_;
  std::vector<std::string_view> groups_;
  std::vector<Found> found_;
  std::vector<std::pair<Fact, uint16_t>> unordered_;
  Prefaces prefaces_;
  int64_t line_ = 0;
};

}  // namespace ezpz::evidence
