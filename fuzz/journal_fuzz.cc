// journal.jsonl as it may be found after a crash, edited by hand, or written by somebody else: it
// is read without harm, and whatever attempt it holds survives being written and read once more.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "failover/record_json.h"
#include "failover/report.h"
#include "journal/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ezpz;
  const journal::Reading reading =
      journal::read_events({reinterpret_cast<const char*>(data), size});
  failover::tell(failover::read_story(reading));
  for (const journal::Event& event : reading.events) {
    const std::string once = dump(failover::to_json(failover::attempt_from_json(event.context)));
    const Json back = Json::parse(once, nullptr, /*allow_exceptions=*/false);
    if (dump(failover::to_json(failover::attempt_from_json(back))) != once) abort();
  }
  return 0;
}
