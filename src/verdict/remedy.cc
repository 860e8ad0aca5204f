#include "verdict/remedy.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace ezpz::verdict {
namespace {

// First the particular, for troubles that often print no line of their own pattern: a word in the
// evidence, in lower case. First match wins.
struct Particular {
  Kind kind;
  std::string_view word;
  std::string_view remedy;
};
constexpr std::array kParticulars{
    Particular{Kind::env_fault, "gtl",
               "set MPICH_GPU_SUPPORT_ENABLED=0, or link the program against the GTL library"},
    Particular{Kind::env_fault, "dynamo", "run without --compile, or with torch 2.13 or newer"},
    Particular{Kind::env_fault, "vnis available", "launch with --no-vni"},
    Particular{Kind::env_fault, "execve",
               "check that the program exists and may be executed on every node, by absolute path"},
};

// Then the general, by kind.
struct General {
  Kind kind;
  std::string_view remedy;
};
constexpr std::array kGenerals{
    General{Kind::env_fault, "check the command, the modules and the environment on every node"},
    General{
        Kind::filesystem_fault,
        "look at `lfs df` for one full storage target (plain df hides it), at the striping of the "
        "checkpoint directory, and at quotas"},
    General{Kind::oom,
            "use less memory per rank (batch, sequence, dataloader workers) or ask for more"},
    General{Kind::port_in_use, "let the launcher choose MASTER_PORT, or free the port"},
    General{Kind::launcher_fault, "try the same launch by hand with --dry-run's command line"},
    General{Kind::collective_timeout,
            "find the rank that stopped calling collectives: the lowest sequence number"},
};

}  // namespace

std::string remedy_for(const AttemptRecord& record, const Verdict& verdict,
                       const RemedyOf& remedy_of) {
  if (!verdict.culprits.empty()) return {};
  const bool of_network = verdict.kind == Kind::env_fault && !record.network.remedy.empty() &&
                          std::any_of(verdict.used.begin(), verdict.used.end(), [&](size_t index) {
                            return record.facts[index].event == Event::network;
                          });
  if (of_network) return record.network.remedy;
  for (const size_t index : verdict.used) {
    const Fact& fact = record.facts[index];
    if (!remedy_of || fact.kind != verdict.kind) continue;
    if (std::string remedy = remedy_of(fact.pattern); !remedy.empty()) return remedy;
  }
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
