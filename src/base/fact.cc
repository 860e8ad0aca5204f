#include "base/fact.h"

#include <array>

#include "base/text.h"
#include "base/words.h"

namespace ezpz {
namespace {

// Each enumeration's words, in its order. One table serves printing and parsing.
constexpr std::array<std::string_view, 16> kKinds{
    "success",      "walltime",           "cancelled",    "preempted",
    "node_failure", "gpu_fault",          "fabric_fault", "filesystem_fault",
    "oom",          "app_error",          "env_fault",    "launcher_fault",
    "port_in_use",  "collective_timeout", "hang",         "unknown"};
constexpr std::array<std::string_view, 3> kRoles{"cause", "cascade", "context"};
constexpr std::array<std::string_view, 19> kEvents{
    "message",         "death",      "node_lost",   "teardown",      "limit",
    "placement",       "launcher",   "within_host", "between_hosts", "unreachable",
    "lost_of_several", "network",    "provider",    "version",       "waiting",
    "part_failed",     "not_booted", "aborted",     "new_run"};
constexpr std::array<std::string_view, 5> kSources{"output", "scheduler", "agent", "probe", "self"};

}  // namespace

std::string_view to_string(Kind kind) { return kKinds.at(static_cast<size_t>(kind)); }
std::string_view to_string(Role role) { return kRoles.at(static_cast<size_t>(role)); }
std::string_view to_string(Event event) { return kEvents.at(static_cast<size_t>(event)); }
std::string_view to_string(Source source) { return kSources.at(static_cast<size_t>(source)); }
bool parse(std::string_view word, Kind* out) { return parse_word(kKinds, word, out); }
bool parse(std::string_view word, Role* out) { return parse_word(kRoles, word, out); }
bool parse(std::string_view word, Event* out) { return parse_word(kEvents, word, out); }
bool parse(std::string_view word, Source* out) { return parse_word(kSources, word, out); }

std::string who(const Fact& fact) {
  std::string text = fact.host;
  if (fact.ranks.empty()) return text;
  if (!text.empty()) text += ' ';
  text += (fact.ranks.size() == 1 ? "rank " : "ranks ") + ranges(fact.ranks);
  return text;
}

}  // namespace ezpz
