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
// After NVIDIA's Xid catalogue: what asks for a reset, a repair or a replacement is hardware, what asks
// to look at the program or to start it again is not. Numbers that are not listed are unproven.
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
    Xid{46, GpuError::hardware},      // GPU stopped processing
    Xid{48, GpuError::hardware},      // double-bit ECC
    Xid{54, GpuError::hardware},      // auxiliary power is not connected
    Xid{61, GpuError::hardware},      // micro-controller breakpoint
    Xid{62, GpuError::hardware},      // micro-controller halt
    Xid{63, GpuError::hardware},      // row remap recorded
    Xid{64, GpuError::hardware},      // row remap failed
    Xid{74, GpuError::hardware},      // NVLink
    Xid{79, GpuError::hardware},      // fell off the bus
    Xid{92, GpuError::hardware},      // high single-bit ECC rate
    Xid{94, GpuError::hardware},      // contained ECC
    Xid{95, GpuError::hardware},      // uncontained ECC
    Xid{109, GpuError::hardware},     // context switch timeout
    Xid{110, GpuError::hardware},     // security fault
    Xid{119, GpuError::hardware},     // no answer from the GPU's system processor
    Xid{120, GpuError::hardware},     // an error of it
    Xid{121, GpuError::hardware},     // link between the chips
    Xid{122, GpuError::hardware},     // the board's flash: reading,
    Xid{123, GpuError::hardware},     // writing,
    Xid{124, GpuError::hardware},     // erasing
    Xid{125, GpuError::hardware},     // its file system
    Xid{136, GpuError::hardware},     // link training failed
    Xid{140, GpuError::hardware},     // unrecovered ECC
    Xid{143, GpuError::hardware},     // initialization failed
    Xid{144, GpuError::hardware},     // NVLink, by its parts; the grammar takes the fatal ones
    Xid{145, GpuError::hardware},    Xid{146, GpuError::hardware}, Xid{147, GpuError::hardware},
    Xid{148, GpuError::hardware},    Xid{149, GpuError::hardware}, Xid{150, GpuError::hardware},
    Xid{154, GpuError::hardware},     // a reset or reboot is required; other actions are unproven
    Xid{155, GpuError::hardware},     // NVLink, defined by software
    Xid{156, GpuError::hardware},     // memory retired
    Xid{157, GpuError::hardware},     // and that failed
    Xid{158, GpuError::hardware},     // fatal timeout
    Xid{167, GpuError::hardware},     // PCIe fatal timeout
    Xid{171, GpuError::hardware},     // uncorrectable error of DRAM,
    Xid{172, GpuError::hardware},     // of SRAM
    Xid{173, GpuError::hardware},     // fatal failure of the link between the chips
};

// "NVRM: Xid (PCI:0000:41:00): 79, pid=..." -> 79
std::optional<int> xid_in(std::string_view text) {
  const size_t word = text.find("Xid");
  if (word == std::string_view::npos) return std::nullopt;
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
constexpr std::array<std::string_view, 3> kUnproven{"OUT_OF_RESOURCES", "GPU Hang", "gpu hang"};

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
