#include "site/scheduler.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace ezpz::site {
namespace {

constexpr std::array<Scheduler, 3> schedulers = {{
    {SchedulerKind::none, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
    {SchedulerKind::slurm, slurm::job_query, slurm::read_job, slurm::nodes_query, slurm::read_nodes,
     slurm::steps_query, slurm::read_steps},
    {SchedulerKind::pbs, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
}};

// The words of a state like "IDLE*+DRAIN", upper case, and the marks behind them.
struct NodeState {
  std::vector<std::string> words;
  std::string marks;
};

NodeState parse_state(std::string_view text) {
  NodeState state;
  for (const std::string& part : split(trim(text), '+')) {
    std::string word;
    for (const char c : part) {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      } else {
        state.marks += c;
      }
    }
    state.words.push_back(word);
  }
  return state;
}

template <size_t N>
bool has_any(const std::vector<std::string>& words, const std::array<const char*, N>& wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const char* w) { return word == w; });
  });
}

}  // namespace

std::string_view to_string(SchedulerKind kind) {
  switch (kind) {
    case SchedulerKind::none:
      return "none";
    case SchedulerKind::slurm:
      return "slurm";
    case SchedulerKind::pbs:
      return "pbs";
  }
  return "none";
}

const Scheduler& scheduler(SchedulerKind kind) {
  for (const Scheduler& row : schedulers) {
    if (row.kind == kind) return row;
  }
  return schedulers[0];
}

bool is_usable(std::string_view node_state) {
  // What SLURM will start nothing on, or expects to lose. An unknown word is not a reason to give
  // a node up.
  static constexpr std::array<const char*, 18> dead = {
      "DOWN",          "FAIL",         "FAILING",    "ERROR",         "NOT_RESPONDING",
      "NO_RESPOND",    "POWERED_DOWN", "POWER_DOWN", "POWERING_DOWN", "POWERING_UP",
      "REBOOT_ISSUED", "FUTURE",       "INVAL",      "INVALID_REG",   "POWER_UP",
      "REBOOT",        "BOOT",         "NOT_IN_JOB"};
  const NodeState state = parse_state(node_state);
  // '*' does not answer, '~' powered down, '#' powering up, '%' powering down, '!' about to be
  // powered down, '^' rebooting.
  return !has_any(state.words, dead) && state.marks.find_first_of("*~#%!^") == std::string::npos;
}

bool is_draining(std::string_view node_state) {
  static constexpr std::array<const char*, 3> words = {"DRAIN", "DRAINING", "DRAINED"};
  return has_any(parse_state(node_state).words, words);
}

}  // namespace ezpz::site
