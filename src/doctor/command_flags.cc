#include "doctor/command_flags.h"

#include <algorithm>

#include "base/text.h"

namespace ezpz::doctor {

std::optional<std::string> flag_value(const Argv& command, const std::vector<std::string>& names) {
  std::optional<std::string> value;
  for (size_t i = 0; i < command.size(); ++i) {
    for (const std::string& name : names) {
      if (command[i] == name) {
        // A word behind it is its value unless it is a flag itself; "-1" is a value.
        const bool has_value = i + 1 < command.size() && (!command[i + 1].starts_with('-') ||
                                                          parse_double(command[i + 1]).has_value());
        value = has_value ? command[i + 1] : "";
      } else if (command[i].size() > name.size() && command[i].starts_with(name) &&
                 command[i][name.size()] == '=') {
        value = command[i].substr(name.size() + 1);
      }
    }
  }
  return value;
}

bool says_no(std::string_view value) {
  const std::string word = lower(value);
  constexpr std::string_view words[] = {"false", "0", "no", "off", "none"};
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

}  // namespace ezpz::doctor
