#include "verdict/gpu_error.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace ezpz::verdict {
namespace {

struct Xid {
  int number;
  GpuError error;
};
// Those that convict are errors of memory, of NVLink and of the bus that no program can cause. Of
// the others in NVIDIA's Xid catalogue that ask for a reset (62, 109, 119, 120, 149 ...) the driver
// or the firmware may be the culprit, on a node that passes its checks: the node is a suspect, and
// is probed.
constexpr std::array kXids{
    Xid{11, GpuError::application},   // invalid push buffer stream
    Xid{13, GpuError::application},   // graphics engine exception: illegal access by a kernel
    Xid{31, GpuError::application},   // page fault by the program
    Xid{32, GpuError::application},   // corrupted push buffer
    Xid{43, GpuError::application},   // channel reset after the program's error
    Xid{45, GpuError::application},   // clean-up of a program that was already dying
    Xid{66, GpuError::application},   // illegal access
    Xid{68, GpuError::application},   // video decoder exception
    Xid{69, GpuError::application},   // graphics engine class error
    Xid{137, GpuError::application},  // illegal access to a peer over NVLink
    Xid{48, GpuError::hardware},      // double-bit ECC
    Xid{63, GpuError::hardware},      // row remap recorded
    Xid{64, GpuError::hardware},      // row remap failed
    Xid{74, GpuError::hardware},      // NVLink
    Xid{79, GpuError::hardware},      // fell off the bus
    Xid{92, GpuError::hardware},      // high single-bit ECC rate
    Xid{94, GpuError::hardware},      // contained ECC
    Xid{95, GpuError::hardware},      // uncontained ECC
    Xid{140, GpuError::hardware},     // unrecovered ECC
    Xid{171, GpuError::hardware},     // uncorrectable error of DRAM,
    Xid{172, GpuError::hardware},     // of SRAM
};

// "NVRM: Xid (PCI:0000:41:00): 79, pid=..." -> 79
std::optional<int> xid_in(std::string_view text) {
  const size_t word = text.find("Xid");
  // SXids are the NVSwitches', numbered otherwise.
  if (word == std::string_view::npos || (word > 0 && text[word - 1] == 'S')) return std::nullopt;
  std::string_view rest = text.substr(word + 3);
  if (const size_t address_end = rest.find("):"); address_end != std::string_view::npos) {
    rest.remove_prefix(address_end + 2);
  }
  size_t begin = 0;
  while (begin < rest.size() && (rest[begin] == ' ' || rest[begin] == ':' || rest[begin] == '=')) {
    ++begin;
  }
  size_t end = begin;
  while (end < rest.size() && std::isdigit(static_cast<unsigned char>(rest[end])) != 0) ++end;
  const std::optional<long> number = parse_int(rest.substr(begin, end - begin));
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<int> xid_of(const Fact& fact) {
  if (const std::optional<int> number = xid_in(fact.text)) return number;
  if (fact.code > 0 && lower(fact.pattern).find("xid") != std::string::npos) return fact.code;
  return std::nullopt;
}

// What a program's mistake and a broken device both end in.
constexpr std::array<std::string_view, 4> kUnproven{"OUT_OF_RESOURCES", "DEVICE_LOST", "GPU Hang",
                                                    "gpu hang"};

}  // namespace

GpuError gpu_error(const Fact& fact) {
  const std::optional<int> number = xid_of(fact);
  if (!number) {
    const bool unproven = std::any_of(
        kUnproven.begin(), kUnproven.end(),
        [&fact](std::string_view words) { return fact.text.find(words) != std::string::npos; });
    return unproven ? GpuError::unproven : GpuError::hardware;
  }
  // Some numbers cover the harmless as well: the words behind them tell.
  if (fact.pattern == "cuda.xid_other") return GpuError::unproven;
  for (const Xid& xid : kXids) {
    if (xid.number == *number) return xid.error;
  }
  return GpuError::unproven;
}

}  // namespace ezpz::verdict
