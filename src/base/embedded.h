// Data files compiled into the binary: machines/*.toml, patterns/*.toml, known_issues/*.toml,
// benchmarks/*.toml and benchmarks/tables/*.toml. The first three can be overridden at run time by
// a directory of the same shape; see site/machine.h, evidence/grammar.h and doctor/known_issues.h.
#pragma once

#include <span>
#include <string_view>

namespace ezpz::embedded {

struct File {
  std::string_view name;  // "perlmutter.toml"
  std::string_view text;
};

std::span<const File> machines();
std::span<const File> patterns();
std::span<const File> known_issues();
std::span<const File> benchmarks();
std::span<const File> benchmarks_tables();

}  // namespace ezpz::embedded
