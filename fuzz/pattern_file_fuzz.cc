// A site's patterns file is written by hand: whatever it holds, the answer is tables or one line
// that says what is wrong and where.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evidence/grammar_file.h"
#include "evidence/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = ezpz::evidence::parse_grammar_file("site.toml", text);
  if (!file) {
    const std::string line = file.error().one_line();
    if (line.find("site.toml:") == std::string::npos) std::abort();
    if (line.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (const auto& entry : file->entries) {
    const auto regex = ezpz::evidence::Regex::compile(entry.regex);
    std::vector<std::string_view> groups;
    if (regex) regex->find("srun: error: nid001306: task 5: Killed", 0, &groups);
  }
  return 0;
}
