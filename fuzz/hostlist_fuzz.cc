// Any text is a host list or an error, and an expanded list survives compressing.
#include <cstdint>
#include <cstdlib>

#include "base/hostlist.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto hosts = ezpz::expand_hostlist({reinterpret_cast<const char*>(data), size});
  if (!hosts.ok()) return 0;
  const auto again = ezpz::expand_hostlist(ezpz::compress_hostlist(*hosts));
  if (!again.ok() || *again != *hosts) std::abort();
  return 0;
}
