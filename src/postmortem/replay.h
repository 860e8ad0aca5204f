// A job's directory judged anew: every attempt's log through today's grammar and rules, what the
// scheduler, the probes and ezpz itself knew from the journal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/grammar.h"
#include "journal/reader.h"
#include "postmortem/autopsy.h"

namespace ezpz::postmortem {

struct Recorded {
  std::string verdict;                // the word the journal holds; empty: it holds none
  std::vector<std::string> culprits;  // host keys, in order
  std::string action;
  std::string why;
};

struct Replayed {
  std::string log;  // "attempt-2.log"; empty: the log is gone and the journal's facts were judged
  Autopsy autopsy;
  Recorded recorded;
  [[nodiscard]] bool agrees() const;
};

struct Replay {
  std::string job_id;
  std::string machine;
  std::vector<Replayed> attempts;
  std::string stop_reason;      // empty: the record has no end
  size_t unreadable_lines = 0;  // of the journal
};

bool is_job_dir(const std::string& path);

// naming_of: the naming of the machine that the journal names.
Result<Replay> replay(const std::string& job_dir, const evidence::Grammar& grammar,
                      const std::function<NodeNaming(const std::string& machine)>& naming_of);

// The record with these facts in place of those that came from the output; what came from elsewhere
// keeps its place in the order.
verdict::AttemptRecord with_output_facts(verdict::AttemptRecord record,
                                         const std::vector<Fact>& output);

}  // namespace ezpz::postmortem
