// What the two ends of an ssh read of each other: any bytes are messages, a wait for more, or an
// error, and an order that is taken is taken the same again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "supervise/ssh_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ezpz::supervise;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  if (const auto hello = find_hello(bytes)) {
    if (hello->begin >= hello->end || hello->end > size) std::abort();
  }
  // The stream, cut where the first byte says.
  MessageReader reader;
  const size_t cut = size > 0 ? data[0] % size : 0;
  for (const std::string_view part : {bytes.substr(0, cut), bytes.substr(cut)}) {
    reader.feed(part);
    while (true) {
      const auto message = reader.next();
      if (!message || !*message) break;
      if (const auto output = read_output(**message); output && output->rank < 0) std::abort();
      if (const auto end = read_end(**message); end && end->exit.signal > 127) std::abort();
      if ((*message)->word == Word::order) (void)read_order((*message)->bytes);
    }
  }
  const auto order = read_order(bytes);
  if (!order) return 0;
  const auto again = read_order(pack(*order));
  if (!again || again->env != order->env || again->command != order->command) std::abort();
  return 0;
}
