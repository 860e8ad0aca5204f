#include "site/scheduler.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "site/pbs.h"

namespace ezpz::site {
namespace {

const std::array<Scheduler, 3>& schedulers() {
  static const std::array<Scheduler, 3> table = {{
      {SchedulerKind::none, {}, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, false, false},
      {SchedulerKind::slurm, slurm::job_sources(), slurm::my_jobs_query, slurm::read_my_jobs,
       slurm::nodes_query, slurm::read_nodes, slurm::steps_query, slurm::read_steps, true, true},
      {SchedulerKind::pbs, pbs::job_sources(), pbs::my_jobs_query, pbs::read_my_jobs,
       pbs::nodes_query, pbs::read_nodes, nullptr, nullptr, false, false},
  }};
  return table;
}

// The words of a state like "IDLE*+DRAIN" or "state-unknown,down", upper case, and the marks that
// SLURM puts behind them.
struct NodeState {
  std::vector<std::string> words;
  std::string marks;
};

NodeState parse_state(std::string_view text) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  NodeState state;
  std::string commas_too(trim(text));
  std::replace(commas_too.begin(), commas_too.end(), ',', '+');
  for (const std::string& part : split(commas_too, '+')) {
    const size_t end = static_cast<size_t>(
        std::find_if(part.rbegin(), part.rend(), is_letter).base() - part.begin());
    std::string word = part.substr(0, end);
    std::transform(word.begin(), word.end(), word.begin(), [](char c) {
      return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    });
    state.words.push_back(word);
    state.marks += part.substr(end);
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
  for (const Scheduler& row : schedulers()) {
    if (row.kind == kind) return row;
  }
  return schedulers()[0];
}

bool is_usable(std::string_view node_state) {
  // What the scheduler will start nothing on, or expects to lose: SLURM's words, then PBS's. An
  // unknown word is not a reason to give a node up.
  static constexpr std::array<const char*, 25> dead = {
      "DOWN",          "FAIL",         "FAILING",      "ERROR",         "NOT_RESPONDING",
      "NO_RESPOND",    "POWERED_DOWN", "POWER_DOWN",   "POWERING_DOWN", "POWERING_UP",
      "REBOOT_ISSUED", "FUTURE",       "INVAL",        "INVALID_REG",   "POWER_UP",
      "REBOOT",        "BOOT",         "NOT_IN_JOB",   "STALE",         "STATE-UNKNOWN",
      "UNRESOLVABLE",  "SLEEP",        "PROVISIONING", "INITIALIZING",  "WAIT-PROVISIONING"};
  const NodeState state = parse_state(node_state);
  // '*' does not answer, '~' powered down, '#' powering up, '%' powering down, '!' about to be
  // powered down, '^' rebooting.
  return !has_any(state.words, dead) && state.marks.find_first_of("*~#%!^") == std::string::npos;
}

bool is_draining(std::string_view node_state) {
  static constexpr std::array<const char*, 4> words = {"DRAIN", "DRAINING", "DRAINED", "OFFLINE"};
  return has_any(parse_state(node_state).words, words);
}

}  // namespace ezpz::site
