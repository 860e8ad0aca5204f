#include "workload/noise.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "workload/files.h"

namespace toy {
namespace {

constexpr int line_bytes = 128;
constexpr int64_t lines_per_mib = (1 << 20) / line_bytes;

}  // namespace

void print(const std::string& text) { write_fully(STDOUT_FILENO, text); }

std::string step_line(int64_t step, double loss, bool junk) {
  char line[160];
  if (!junk) {
    snprintf(line, sizeof line, "step=%" PRId64 " loss=%.6f\n", step, loss);
    return line;
  }
  using namespace std::string_literals;
  snprintf(line, sizeof line,
           "\x1b[1mst\x1b[0mep=\x1b[36m%" PRId64 "\x1b[0m lo\x1b[31mss\x1b[0m=%.6f\n", step, loss);
  return "\xff\xfe\x80 not text \xc3\x28 \xed\xa0\x80\n"s + "nul \0 nul\n"s +
         "  5%|#         |\r 50%|#####     |\r100%|##########|\n"s + line;
}

void print_burst(int64_t megabytes) {
  std::string mib;
  int64_t number = 0;
  for (int64_t i = 0; i < megabytes; ++i) {
    mib.clear();
    for (int64_t j = 0; j < lines_per_mib; ++j) {
      char head[32];
      const int used = snprintf(head, sizeof head, "burst %08" PRId64 " ", number++);
      mib.append(head, static_cast<size_t>(used));
      mib.append(static_cast<size_t>(line_bytes - 1 - used), 'x');
      mib.push_back('\n');
    }
    print(mib);
  }
}

}  // namespace toy
