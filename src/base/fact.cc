#include "base/fact.h"

#include <array>

#include "base/text.h"

namespace ezpz {
namespace {

// Each enumeration's words, in its order. One table serves printing and parsing.
constexpr std::array kKinds{
    "success",      "walltime",           "cancelled",    "preempted",
    "node_failure", "gpu_fault",          "fabric_fault", "filesystem_fault",
    "oom",          "app_error",          "env_fault",    "launcher_fault",
    "port_in_use",  "collective_timeout", "hang",         "unknown"};
constexpr std::array kRoles{"cause", "cascade", "context"};
constexpr std::array kEvents{"message", "death",     "node_lost", "teardown",
                             "limit",   "placement", "launcher"};
constexpr std::array kSources{"output", "scheduler", "agent", "probe", "self"};

template <class Enum, class Table>
bool parse_from(const Table& table, std::string_view word, Enum* out) {
  for (size_t i = 0; i < table.size(); ++i) {
    if (word == table[i]) {
      *out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string_view to_string(Kind kind) { return kKinds.at(static_cast<size_t>(kind)); }
std::string_view to_string(Role role) { return kRoles.at(static_cast<size_t>(role)); }
std::string_view to_string(Event event) { return kEvents.at(static_cast<size_t>(event)); }
std::string_view to_string(Source source) { return kSources.at(static_cast<size_t>(source)); }
bool parse(std::string_view word, Kind* out) { return parse_from(kKinds, word, out); }
bool parse(std::string_view word, Role* out) { return parse_from(kRoles, word, out); }
bool parse(std::string_view word, Event* out) { return parse_from(kEvents, word, out); }
bool parse(std::string_view word, Source* out) { return parse_from(kSources, word, out); }

std::string who(const Fact& fact) {
  std::string text = fact.host;
  if (fact.ranks.empty()) return text;
  if (!text.empty()) text += ' ';
  text += (fact.ranks.size() == 1 ? "rank " : "ranks ") + ranges(fact.ranks);
  return text;
}

}  // namespace ezpz
