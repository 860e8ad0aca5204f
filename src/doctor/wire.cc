#include "doctor/wire.h"

#include <fmt/core.h>
#include <sys/random.h>
#include <unistd.h>

#include <map>

#include "base/clock.h"
#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr std::string_view kMark = "ezpz-doctor-node ";
constexpr size_t kChunk = 800;
constexpr long kMostParts = 512;
constexpr size_t kLongestId = 32;

struct Parts {
  std::map<long, std::string> chunks;
  long total = 0;
};

// The next word of text up to a space, which is taken off with it.
std::string_view take_word(std::string_view& text) {
  const size_t end = text.find(' ');
  if (end == std::string_view::npos) return {};
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end + 1);
  return word;
}

}  // namespace

std::string wire_id() {
  unsigned long long number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = static_cast<unsigned long long>(wall_s() * 1e6) ^
             (static_cast<unsigned long long>(getpid()) << 40U);
  }
  return fmt::format("{:016x}", number);
}

std::string write_wire(std::string_view payload, std::string_view id) {
  const size_t total = payload.empty() ? 1 : (payload.size() + kChunk - 1) / kChunk;
  std::string lines;
  for (size_t part = 0; part < total; ++part) {
    const std::string_view chunk = payload.substr(part * kChunk, kChunk);
    lines += fmt::format("{}{} {}/{} {} {}\n", kMark, id, part + 1, total, chunk.size(), chunk);
  }
  return lines;
}

std::vector<std::string> read_wire(std::string_view output) {
  std::map<std::string, Parts, std::less<>> senders;
  std::vector<std::string> payloads;
  size_t at = 0;
  while ((at = output.find(kMark, at)) != std::string_view::npos) {
    at += kMark.size();
    std::string_view rest = output.substr(at, output.find('\n', at) - at);
    const std::string_view id = take_word(rest);
    const std::string_view place = take_word(rest);
    const auto length = parse_int(take_word(rest));
    const size_t slash = place.find('/');
    if (id.empty() || id.size() > kLongestId || slash == std::string_view::npos) continue;
    const auto part = parse_int(place.substr(0, slash));
    const auto total = parse_int(place.substr(slash + 1));
    if (!part || !total || *part < 1 || *part > *total || *total > kMostParts) continue;
    if (!length || *length < 0 || static_cast<size_t>(*length) > rest.size()) continue;
    // What looks like a report inside a report is its text.
    at = static_cast<size_t>(rest.data() - output.data()) + static_cast<size_t>(*length);
    Parts& sender = senders[std::string(id)];
    if (sender.total == 0) sender.total = *total;
    if (sender.total != *total) continue;
    sender.chunks.emplace(*part, rest.substr(0, static_cast<size_t>(*length)));
    if (sender.chunks.size() != static_cast<size_t>(*total)) continue;
    std::string payload;
    for (const auto& [number, chunk] : sender.chunks) payload += chunk;
    payloads.push_back(std::move(payload));
    senders.erase(std::string(id));
  }
  return payloads;
}

}  // namespace ezpz::doctor
