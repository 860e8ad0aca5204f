// Peers for bench/evidence.py: `literal_set` prints the grammar's literals, one a line;
// `literal_set LOG` counts the lines that hold one of them, by RE2::Set.
#include <fcntl.h>
#include <re2/set.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "evidence/grammar.h"
#include "evidence/grammar_tables.h"

int main(int argc, char** argv) {
  const auto grammar = ezpz::evidence::Grammar::load();
  if (!grammar) return 1;
  const std::vector<std::string>& literals = grammar->tables().literals;
  if (argc < 2) {
    for (const std::string& literal : literals) std::printf("%s\n", literal.c_str());
    return 0;
  }
  re2::RE2::Options options(re2::RE2::Latin1);
  options.set_case_sensitive(false);
  options.set_literal(true);
  options.set_max_mem(int64_t{256} << 20);
  re2::RE2::Set set(options, re2::RE2::UNANCHORED);
  for (const std::string& literal : literals) set.Add(literal, nullptr);
  if (!set.Compile()) return 1;

  const int log = open(argv[1], O_RDONLY | O_CLOEXEC);
  std::string text;
  std::vector<char> buffer(size_t{1} << 18);
  long hits = 0;
  for (ssize_t n; (n = read(log, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(n));
    size_t at = 0;
    for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      const re2::StringPiece line(text.data() + at, end - at);
      hits += set.Match(line, nullptr) ? 1 : 0;
    }
    text.erase(0, at);
  }
  std::printf("%ld\n", hits);
  return log < 0 ? 1 : 0;
}
