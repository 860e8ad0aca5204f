// Hosts as a person reads them: compressed and bounded.
#pragma once

#include <string>
#include <vector>

#include "base/node.h"

namespace ezpz::doctor {

std::string text_of_hosts(std::vector<std::string> spelled);
std::string text_of_hosts(const std::vector<Node>&);
// "1 host", "4 hosts"
std::string count_of(size_t, const char* one);

}  // namespace ezpz::doctor
