#include "verdict/remedy.h"

#include <array>
#include <string_view>

#include "base/text.h"

namespace ezpz::verdict {
namespace {

// First the particular: a word in the evidence, in lower case. First match wins.
struct Particular {
  Kind kind;
  std::string_view word;
  std::string_view remedy;
};
constexpr std::array kParticulars{
    Particular{Kind::env_fault, "gtl",
               "set MPICH_GPU_SUPPORT_ENABLED=0, or link the program against the GTL library"},
    Particular{Kind::env_fault, "gpu_support_enabled",
               "set MPICH_GPU_SUPPORT_ENABLED=0, or link the program against the GTL library"},
    Particular{Kind::env_fault, "dynamo", "run without --compile, or with torch 2.13 or newer"},
    Particular{Kind::env_fault, "vni", "launch with --no-vni after the launcher's own separator"},
    Particular{
        Kind::env_fault, "eligible provider",
        "make the fabric's libfabric provider visible to the ranks (module, container mount)"},
    Particular{Kind::env_fault, "cuda-capable",
               "ask for GPUs in the job and the step: the ranks see none"},
    Particular{Kind::env_fault, "no module named",
               "activate the program's Python environment on every node before launching"},
    Particular{Kind::env_fault, "execve",
               "check that the program exists and may be executed on every node, by absolute path"},
    Particular{Kind::env_fault, "no such file",
               "check that the path exists on every node: node-local paths are not shared"},
    Particular{Kind::filesystem_fault, "no space left",
               "look at `lfs df` for one full storage target (plain df hides it), at the striping "
               "of the checkpoint directory, and at quotas"},
    Particular{Kind::filesystem_fault, "quota",
               "look at the quota of the user and the project (`lfs quota`), then clean up"},
    Particular{
        Kind::filesystem_fault, "stale",
        "a shared directory was replaced or lost: keep caches (Triton, inductor) node-local"},
};

// Then the general, by kind.
struct General {
  Kind kind;
  std::string_view remedy;
};
constexpr std::array kGenerals{
    General{Kind::env_fault, "check the command, the modules and the environment on every node"},
    General{Kind::filesystem_fault,
            "check the filesystem the job writes to: `lfs df`, striping, quota, permissions"},
    General{Kind::oom,
            "use less memory per rank (batch, sequence, dataloader workers) or ask for more"},
    General{Kind::port_in_use, "let the launcher choose MASTER_PORT, or free the port"},
    General{Kind::launcher_fault, "try the same launch by hand with --dry-run's command line"},
    General{Kind::collective_timeout,
            "find the rank that stopped calling collectives: the lowest sequence number"},
};

}  // namespace

std::string remedy_for(const AttemptRecord& record, const Verdict& verdict) {
  for (const size_t index : verdict.used) {
    const Fact& fact = record.facts[index];
    const std::string evidence = lower(fact.pattern + ' ' + fact.text + ' ' + fact.reason);
    for (const Particular& particular : kParticulars) {
      if (particular.kind == verdict.kind && evidence.find(particular.word) != std::string::npos) {
        return std::string(particular.remedy);
      }
    }
  }
  for (const General& general : kGenerals) {
    if (general.kind == verdict.kind) return std::string(general.remedy);
  }
  return {};
}

}  // namespace ezpz::verdict
