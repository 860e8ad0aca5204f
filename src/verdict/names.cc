// The words of the verdict's enumerations, each table in the enumeration's order.
#include <array>
#include <string_view>

#include "base/words.h"
#include "verdict/attempt.h"
#include "verdict/policy.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {
namespace {

constexpr std::array<std::string_view, 4> kEndings{"exited", "watchdog", "user_stop", "guard"};
constexpr std::array<std::string_view, 6> kProvenances{"scraped",   "agent",      "probed",
                                                       "scheduler", "unkillable", "blind"};
constexpr std::array<std::string_view, 4> kActions{"stop", "retry_same", "swap", "probe"};
constexpr std::array<std::string_view, 3> kBlinds{"never", "last-resort", "always"};

}  // namespace

std::string_view to_string(Ending ending) { return kEndings.at(static_cast<size_t>(ending)); }
std::string_view to_string(Provenance p) { return kProvenances.at(static_cast<size_t>(p)); }
std::string_view to_string(Action action) { return kActions.at(static_cast<size_t>(action)); }
std::string_view to_string(Blind blind) { return kBlinds.at(static_cast<size_t>(blind)); }

bool parse(std::string_view word, Ending* out) { return parse_word(kEndings, word, out); }
bool parse(std::string_view word, Provenance* out) { return parse_word(kProvenances, word, out); }
bool parse(std::string_view word, Action* out) { return parse_word(kActions, word, out); }
bool parse(std::string_view word, Blind* out) { return parse_word(kBlinds, word, out); }

}  // namespace ezpz::verdict
