// A verdict in the making, and how sure each kind of evidence makes us.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "verdict/case_file.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {

// The scale of Verdict::confidence. A second, independent fact about the culprit adds
// kCorroboration once, never beyond kMost.
namespace confidence {
inline constexpr double kSaidByScheduler = 0.95;  // node or job state, its clock, its banner
inline constexpr double kSaidByLauncher = 0.9;    // "Node failure on", an agent's or probe's word
inline constexpr double kWholeHostDied = 0.8;     // every rank of one host, innocent causes asked
inline constexpr double kMessage = 0.7;           // an error text of that kind
inline constexpr double kPartOfHostDied = 0.65;   // some ranks of one host, innocent causes asked
inline constexpr double kBareExit = 0.5;          // an exit code or signal and no word about why
inline constexpr double kInferred = 0.35;         // from what is missing: silence, no clock
inline constexpr double kUnknown = 0.1;
inline constexpr double kCorroboration = 0.05;
inline constexpr double kMost = 0.99;
}  // namespace confidence

struct Finding {
  Verdict verdict;
  // Why the cause-like facts that are not used do not count, unless something closer explains it.
  std::string why_not_the_rest;

  void use(const Exhibit& exhibit) { verdict.used.push_back(exhibit.index); }
  void use(const std::vector<const Exhibit*>& exhibits) {
    for (const Exhibit* exhibit : exhibits) use(*exhibit);
  }
};

Finding found(Kind, double sure, std::string summary, std::string why_not_the_rest);

// Convicts the active host the exhibit names, or adds the exhibit's ranks to its conviction.
void convict(const CaseFile&, const Exhibit&, Finding*);

// Sorts used, fills set_aside and retired_host_named, and counts corroboration.
void close_finding(const CaseFile&, Finding*);

// "node failure", "program error": a kind for people.
std::string_view words_of(Kind);
// "ranks 4-7", "rank 5", "" for none.
std::string rank_words(const std::vector<int>& ascending);
// "nid001304, nid001306 and nid001308"
std::string host_words(const std::vector<std::string>& hosts);
// "line 12" or "a report of the agent on it": how to find the evidence again.
std::string place_of(const Fact&);

}  // namespace ezpz::verdict
