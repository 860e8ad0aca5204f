// A site's own machine table: any text is a machine or a one-line error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "site/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto machine =
      ezpz::site::parse_machine({reinterpret_cast<const char*>(data), size}, "site.toml");
  if (machine) {
    ezpz::site::detect_machine({*machine}, {"nid000001", "", "", {}});
  } else if (machine.error().one_line().find('\n') != std::string::npos) {
    abort();
  }
  return 0;
}
