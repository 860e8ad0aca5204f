#include "launch/port.h"

#include <cstdint>

namespace ezpz::launch {
namespace {

constexpr int port_count = last_port - first_port + 1;

// FNV-1a: the same on every machine and in every version, unlike std::hash.
uint64_t hash(const std::string& text) {
  uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) {
    value ^= static_cast<unsigned char>(c);
    value *= 0x100000001b3U;
  }
  return value;
}

}  // namespace

int choose_port(const std::string& job_id, int attempt, const std::string& salt,
                const std::function<bool(int port)>& is_free) {
  // The stride has no factor in common with the number of ports, so no two of 10000 attempts of a
  // run start from the same one.
  constexpr uint64_t stride = 7919;
  const uint64_t base = hash(job_id + '\n' + salt);
  const uint64_t start = base % port_count + static_cast<uint64_t>(attempt) * stride;
  const int preferred = first_port + static_cast<int>(start % port_count);
  if (!is_free) return preferred;
  for (int i = 0; i < port_count; ++i) {
    const int port = first_port + (preferred - first_port + i) % port_count;
    if (is_free(port)) return port;
  }
  return preferred;
}

}  // namespace ezpz::launch
