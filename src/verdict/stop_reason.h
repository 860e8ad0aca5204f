// The words after "FAILOVER STOP: " and what each means: one table for the loop, help and docs.
#pragma once

#include <span>
#include <string_view>

namespace ezpz::verdict {

struct StopReason {
  std::string_view word;
  std::string_view meaning;  // one sentence, without a full stop
};

// Every word decide() and decide_after_probe() can stop with.
std::span<const StopReason> stop_reasons();
// Empty for a word that is not in the table.
std::string_view meaning_of_stop(std::string_view word);

}  // namespace ezpz::verdict
