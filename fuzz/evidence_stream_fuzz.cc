// Hostile output: whatever the bytes and however they are cut, the stream neither crashes nor lets
// the cuts change what it found, and every fact is within its bounds.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "evidence/stream.h"

namespace {

using ezpz::Fact;
using ezpz::evidence::Grammar;
using ezpz::evidence::Stream;

void check(bool fine) {
  if (!fine) std::abort();
}

const Grammar& grammar() {
  static const Grammar loaded = [] {
    ezpz::Result<Grammar> result = Grammar::load();
    check(result.ok());
    return *std::move(result);
  }();
  return loaded;
}

void check_bounds(const Fact& fact) {
  check(fact.text.size() <= 400);
  for (const char c : fact.text) check(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  check(fact.host.find_first_of(" \t\r\n:'\"") == std::string::npos);
  check(fact.line >= 1);
}

bool same(const Fact& a, const Fact& b) {
  return a.line == b.line && a.offset == b.offset && a.pattern == b.pattern && a.host == b.host &&
         a.ranks == b.ranks && a.text == b.text;
}

}  // namespace

// The first byte says how to cut the rest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Stream whole(grammar());
  whole.feed(text);
  whole.finish();

  Stream cut(grammar());
  uint32_t state = data[0];
  for (size_t at = 0; at < text.size();) {
    state = state * 1664525U + 1013904223U;
    const size_t length = 1 + (state >> 16U) % (data[0] < 128 ? 7 : 300);
    cut.feed(text.substr(at, length));
    at += length;
  }
  cut.finish();

  check(whole.facts().size() == cut.facts().size());
  for (size_t i = 0; i < whole.facts().size(); ++i) {
    check_bounds(whole.facts()[i]);
    check(same(whole.facts()[i], cut.facts()[i]));
  }
  check(whole.progress().last_step == cut.progress().last_step);
  check(whole.progress().first_step == cut.progress().first_step);
  check(whole.progress().interval == cut.progress().interval);
  check(whole.progress().last_checkpoint == cut.progress().last_checkpoint);
  check(whole.lines() == cut.lines());
  check(whole.bytes() == static_cast<int64_t>(text.size()));
  return 0;
}
