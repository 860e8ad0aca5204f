// Why a pattern takes effect on a line, or does not (`ezpz patterns test`). The matcher itself says
// what became of the line; this looks at each entry again and tells what it saw.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fact.h"
#include "evidence/grammar_tables.h"
#include "evidence/matcher.h"

namespace ezpz::evidence {

enum class Fate {
  taken,      // it counts: a fact, a checkpoint, a preface kept for later lines
  no_match,   // a trigger is there, the regex does not match
  vetoed,     // one of its `unless` is there; `why` is that text
  lost,       // a pattern that comes before it matches the same text; `why` is its id
  not_after,  // the line is not below a preface of its `only_after`; `why` names them
  repeated,   // the same was said in this message already
};
std::string_view to_string(Fate);

// What one entry made of one message.
struct Look {
  const Entry* entry;
  Fate fate;
  std::string why;
  std::vector<std::pair<std::string, std::string>> captures;  // of its first match, by name
};

struct Explanation {
  std::string text;        // the line without escapes, printable
  std::string label_host;  // as its labels say
  std::vector<int> label_ranks;
  std::vector<Look> looks;  // message by message, in the order of precedence
  std::vector<Fact> facts;  // what the matcher made of it
};

class Explainer {
 public:
  // The grammar must outlive it.
  explicit Explainer(const Grammar& grammar);

  // The segments of a log in their order. Null for one that holds no entry's trigger; valid until
  // the next call.
  const Explanation* explain(std::string_view segment, int64_t line);

 private:
  void look_at_message(std::string_view message, const Outcome& outcome);
  Look look(const Entry& entry, std::string_view message, const Outcome& outcome);

  struct Taken {
    size_t begin;
    size_t end;
    const Entry* entry;
  };

  const Grammar::Tables& tables_;
  Matcher matcher_;
  Explanation explanation_;
  std::string stripped_;
  std::vector<Taken> taken_;  // in this message
};

}  // namespace ezpz::evidence
