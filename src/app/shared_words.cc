#include "app/shared_words.h"

#include <algorithm>

namespace ezpz::app {

Result<Variable> parse_variable(std::string_view text) {
  const size_t equals = text.find('=');
  Variable variable{std::string(text.substr(0, equals)), std::nullopt};
  const std::string& name = variable.name;
  const bool plain = !name.empty() && name.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_") == std::string::npos;
  const bool digit_first = !name.empty() && name[0] >= '0' && name[0] <= '9';
  if (!plain || digit_first) {
    return Error{"not a variable's name: " + name, "--env", "NAME or NAME=VALUE"};
  }
  if (equals != std::string_view::npos) variable.value = std::string(text.substr(equals + 1));
  return variable;
}

Argv take_foreign_flags(Argv& rest, bool after_dashes) {
  if (!after_dashes || rest.empty() || rest[0].empty() || rest[0][0] != '-') return {};
  const auto second = std::find(rest.begin(), rest.end(), "--");
  if (second == rest.end()) return {};
  Argv flags(rest.begin(), second);
  rest.erase(rest.begin(), second + 1);
  return flags;
}

}  // namespace ezpz::app
