#include "verdict/node_state.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace ezpz::verdict {
namespace {

struct NodeWord {
  std::string_view word;
  NodeHealth health;
};
constexpr std::array kNodeWords{
    // both
    NodeWord{"DOWN", NodeHealth::lost},
    // SLURM
    NodeWord{"FAIL", NodeHealth::lost},
    NodeWord{"FAILED", NodeHealth::lost},
    NodeWord{"NOT_RESPONDING", NodeHealth::silent},
    NodeWord{"NO_RESPOND", NodeHealth::silent},
    // PBS. A node that the server has not heard of yet, or no longer hears of from its mom, is
    // called down beside it when it is lost. "offline" is an operator's wish for later: what runs
    // there runs on.
    NodeWord{"STATE-UNKNOWN", NodeHealth::silent},
    NodeWord{"STALE", NodeHealth::silent},
    NodeWord{"UNRESOLVABLE", NodeHealth::silent},
    NodeWord{"OFFLINE", NodeHealth::fine},
};

struct JobEnd {
  std::string_view state;
  Kind kind;
};
// SLURM's words alone. PBS's letters never say how a job ended ("F" is finished, well or not), and
// none of them is a word here.
constexpr std::array kJobEnds{
    JobEnd{"TIMEOUT", Kind::walltime},       JobEnd{"DEADLINE", Kind::walltime},
    JobEnd{"CANCELLED", Kind::cancelled},    JobEnd{"REVOKED", Kind::cancelled},
    JobEnd{"PREEMPTED", Kind::preempted},    JobEnd{"NODE_FAIL", Kind::node_failure},
    JobEnd{"BOOT_FAIL", Kind::node_failure}, JobEnd{"OUT_OF_MEMORY", Kind::oom},
};

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

// One word of a state: "DOWN*", "IDLE", "NOT_RESPONDING", "ALLOCATED#".
NodeHealth health_of_word(std::string_view word) {
  constexpr std::string_view kFlags = "*~#!%$@^-";
  const std::string_view name = word.substr(0, word.find_last_not_of(kFlags) + 1);
  for (const NodeWord& known : kNodeWords) {
    if (known.word == name) return known.health;
  }
  const std::string_view flags = word.substr(name.size());
  return flags.find('*') != std::string_view::npos ? NodeHealth::silent : NodeHealth::fine;
}

}  // namespace

NodeHealth node_health(std::string_view state) {
  const std::string text = upper(state);
  std::string_view rest = text;
  NodeHealth worst = NodeHealth::fine;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of("+, "), rest.size());
    worst = std::max(worst, health_of_word(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return worst;
}

std::optional<Kind> end_of_job(std::string_view job_state) {
  // sacct writes "CANCELLED by 1000" and "CANCELLED+".
  const std::string text = upper(job_state);
  const std::string_view word = std::string_view(text).substr(0, text.find_first_of(" +,"));
  for (const JobEnd& end : kJobEnds) {
    if (end.state == word) return end.kind;
  }
  return std::nullopt;
}

}  // namespace ezpz::verdict
