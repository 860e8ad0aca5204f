// What nodes answer through a launcher, and what lfs says: hostile text, whole or in pieces.
#include <cstddef>
#include <cstdint>
#include <string>

#include "doctor/look_folder.h"
#include "doctor/lustre.h"
#include "doctor/node_report.h"
#include "doctor/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string& payload : ezpz::doctor::read_wire(text)) {
    if (payload.size() > size) __builtin_trap();
  }
  if (const auto report = ezpz::doctor::parse_report(text)) {
    // What was read can be told, and reads back.
    if (!ezpz::doctor::parse_report(ezpz::doctor::format_report(*report))) __builtin_trap();
  }
  (void)ezpz::doctor::parse_folder(text);
  for (const auto& target : ezpz::doctor::read_lustre_space(text)) {
    const double share = target.used_share();
    if (!(share >= 0 && share <= 1)) __builtin_trap();
  }
  (void)ezpz::doctor::read_lustre_stripes(text);
  return 0;
}
