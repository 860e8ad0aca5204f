// What one segment (a line, or one state of a progress bar) says: escapes and label off, split into
// messages, each looked at by the entries that it triggers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.h"
#include "evidence/grammar_tables.h"
#include "evidence/prefaces.h"

namespace ezpz::evidence {

struct Outcome {
  std::vector<Fact> facts;  // line, offset and time are the caller's to fill in
  std::optional<int> world_size;
  std::optional<Step> step;
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

// Reuses its buffers and remembers prefaces: one for each stream.
class Matcher {
 public:
  explicit Matcher(const Grammar::Tables& tables) : tables_(tables) {}

  // `line` is the segment's place in the log. The result is valid until the next call.
  const Outcome& match(std::string_view segment, int64_t line);

 private:
  struct Hit {
    size_t at;
    size_t literal;
  };
  struct Found {
    size_t begin;
    size_t end;
    size_t first_fact;
    size_t facts;
  };

  [[nodiscard]] std::span<const Hit> hits_in(size_t begin, size_t end) const;
  std::string_view find_hits(std::string_view segment);
  void match_message(std::string_view clean, size_t begin, size_t end, const Origin& origin);
  void note_member(const Entry& entry, const Origin& origin);
  void match_entry(size_t entry, std::string_view message, const Origin& origin);
  void find_step(std::string_view clean, size_t begin, size_t end);

  const Grammar::Tables& tables_;
  Outcome outcome_;
  std::string stripped_;
  std::vector<Hit> hits_;
  std::vector<size_t> triggered_;
  std::vector<std::string_view> groups_;
  std::vector<Found> found_;
  std::vector<Fact> unordered_;
  Prefaces prefaces_;
  int64_t line_ = 0;
};

}  // namespace ezpz::evidence
