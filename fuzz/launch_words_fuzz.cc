// The command line of `ezpz launch`: any words give options or a one-line error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app/launch_options.h"
#include "base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ezpz;
  const std::vector<std::string> words = split({reinterpret_cast<const char*>(data), size}, '\n');
  const Result<app::LaunchOptions> options = app::parse_launch_options(words);
  if (options) {
    if (options->command.empty() || options->command[0].empty()) abort();
  } else if (options.error().one_line().find('\n') != std::string::npos) {
    abort();
  }
  return 0;
}
