// "mapped-nccl": the libnccl that torch maps is what counts, not the one that a module put on
// LD_LIBRARY_PATH: torch's wheels carry their own, and an RPATH comes first.
#include <fmt/core.h>

#include "base/text.h"
#include "doctor/node_sight.h"
#include "doctor/version.h"

namespace ezpz::doctor {
namespace {

constexpr const char* kCheck = "mapped-nccl";

std::string named(const FoundLibrary& library) {
  return fmt::format(
      "{} ({})", library.version.empty() ? "of unknown version" : printable(library.version, 40),
      printable(library.path, 200));
}

bool same_version(const FoundLibrary& a, const FoundLibrary& b) {
  const auto left = version_numbers(a.version);
  const auto right = version_numbers(b.version);
  return left && right && compare_versions(*left, *right) == 0;
}

std::string preload(const FoundLibrary& library) {
  return "if the module's is wanted: export LD_PRELOAD=" + printable(library.path, 200) +
         "; else only its network plugin counts";
}

}  // namespace

std::vector<Finding> check_mapped_nccl(const NodeSight& sight, const NodeContext&) {
  const auto unknown = [](const std::string& why) {
    return std::vector<Finding>{{kCheck, Health::unknown,
                                 "which NCCL is mapped is not known: " + why,
                                 "NCCL_DEBUG=VERSION makes NCCL print its version", ""}};
  };
  if (!sight.python) return unknown(printable(sight.python.why_not()));
  if (!sight.python->torch) return unknown(printable(sight.python->torch.why_not()));
  if (!*sight.python->torch) return unknown(printable(sight.python->path, 160) + " has no torch");
  const Torch& torch = **sight.python->torch;
  const std::optional<FoundLibrary> asked =
      sight.libraries.asked_nccl ? *sight.libraries.asked_nccl : std::nullopt;
  if (!torch.nccl_nowhere.empty()) {
    return {{kCheck, Health::error,
             "torch needs " + printable(torch.nccl_nowhere, 80) +
                 ", which the loader does not find: import torch fails",
             "load the module that torch was built with, or reinstall torch", ""}};
  }
  if (torch.nccl_built_in) {
    if (!asked) return {{kCheck, Health::ok, "torch has its NCCL built in", "", ""}};
    return {
        {kCheck, Health::warning,
         "torch has its NCCL built in: the one on LD_LIBRARY_PATH, " + named(*asked) + ", is inert",
         "use a torch built with the module's NCCL; else only the module's network plugin counts",
         ""}};
  }
  if (!torch.mapped_nccl) {
    if (torch.cuda.empty() && torch.hip.empty()) {
      return {{kCheck, Health::ok, "this torch uses neither NCCL nor RCCL", "", ""}};
    }
    return unknown(printable(torch.mapped_nccl.why_not()));
  }
  const FoundLibrary& mapped = *torch.mapped_nccl;
  const std::string text =
      fmt::format("torch maps NCCL {}, by {}", named(mapped), printable(torch.mapped_because, 120));
  if (!asked || asked->path == mapped.path || same_version(*asked, mapped)) {
    return {{kCheck, Health::ok, text, "", ""}};
  }
  return {{kCheck, Health::warning,
           text + "; the one on LD_LIBRARY_PATH, " + named(*asked) + ", is inert", preload(*asked),
           ""}};
}

}  // namespace ezpz::doctor
