// One line of journal.jsonl: {"time": "...", "name": "...", "context": {...}}.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace ezpz::journal {

std::string format_event(double wall_s, std::string_view name, const Json& context);

}  // namespace ezpz::journal
