// `ezpz-train tokenize`: texts into a file of tokens. Readable as C++17.
#pragma once

#include <string>
#include <vector>

namespace ezpz::train {

// The words behind "tokenize"; the exit code.
int tokenize_command(const std::vector<std::string>& words);

}  // namespace ezpz::train
