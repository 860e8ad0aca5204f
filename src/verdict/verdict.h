// From an attempt's record to what ended it and who is to blame. Pure: the loop, postmortem and the
// planner call the same function.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.h"
#include "verdict/attempt.h"

namespace ezpz::verdict {

// What a retirement rests on.
enum class Provenance { scraped, agent, probed, scheduler, unkillable, blind };
std::string_view to_string(Provenance);
bool parse(std::string_view word, Provenance* out);

// Culprit::fact when the evidence is no fact but SchedulerView::node_states.
inline constexpr size_t kNoFact = static_cast<size_t>(-1);

struct Culprit {
  std::string host;  // host key
  Provenance provenance = Provenance::scraped;
  std::vector<int> ranks;  // that died there first, when known: the seat
  size_t fact = kNoFact;   // index into AttemptRecord::facts of the evidence shown to people
};

struct SetAside {
  size_t fact = 0;
  std::string reason;  // "after the step was cancelled", "same failure on 4 hosts"
};

struct Verdict {
  Kind kind = Kind::unknown;
  std::vector<Culprit> culprits;  // only ever active hosts; empty when nobody is convicted
  // Hosts (keys, active) that alone of all their peers showed the fault. Not convicted: a probe
  // decides, and only what fails it is swapped.
  std::vector<std::string> suspects;
  std::vector<int> dead_ranks;  // the seats that died first, wherever they sat; ascending
  double confidence = 0;        // 0..1, on the scale of verdict/finding.h
  std::string summary;          // one sentence for a tired person
  std::string remedy;        // for env_fault, filesystem_fault and kin: what to try; may be empty
  std::vector<size_t> used;  // facts the verdict rests on
  std::vector<SetAside> set_aside;
  bool retired_host_named = false;  // evidence named a host retired earlier: a bug signal
};

// node_key maps a printed host name to its key (base/node.h); names it cannot map stay as printed.
using NodeKey = std::function<std::string(std::string_view)>;
// What the grammar advises for a pattern id; empty when it has nothing to say.
using RemedyOf = std::function<std::string(std::string_view pattern)>;

// Without remedy_of a remedy is still given, in general words.
Verdict attribute(const AttemptRecord&, const NodeKey& node_key, const RemedyOf& remedy_of = {});

}  // namespace ezpz::verdict
