#include "doctor/text_of_hosts.h"

#include <algorithm>

#include "base/hostlist.h"
#include "base/text.h"

namespace ezpz::doctor {

std::string text_of_hosts(std::vector<std::string> spelled) {
  constexpr size_t kLongest = 300;
  std::sort(spelled.begin(), spelled.end());
  // The list's own grammar must not be in a name.
  const bool plain = std::none_of(spelled.begin(), spelled.end(), [](const std::string& name) {
    return name.empty() || name.find_first_of(" \t\n,[]") != std::string::npos;
  });
  std::string text = plain ? compress_hostlist(spelled) : join(spelled, ",");
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return printable(text, kLongest + 3);
}

std::string text_of_hosts(const std::vector<Node>& nodes) {
  return text_of_hosts(spellings(nodes));
}

std::string count_of(size_t count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

}  // namespace ezpz::doctor
