// Which of the programs called mpiexec is which. A conda environment, a module and a vendor's
// default all put one first in PATH; the wrong one starts everything on one host, or nothing at
// all.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "launch/plan.h"

namespace ezpz::launch {

enum class MpiKind { unknown, hydra, intel, openmpi, prrte, pals };
std::string_view to_string(MpiKind);

// From what `PROGRAM --version` printed; path, links followed, helps where that says little.
MpiKind mpi_kind(std::string_view version_output, const std::string& real_path);

struct MpiProgram {
  std::string path;
  MpiKind kind = MpiKind::unknown;
};

// The seams to the machine: PATH, links, and a bounded child.
struct MpiSearch {
  std::function<std::string(const std::string& name)> find;  // empty: not in PATH
  std::function<std::string(const std::string& path)> resolve;
  AskHelper ask;
};
MpiSearch search_here(AskHelper ask);

inline constexpr double kVersionTimeout_s = 4;

// The first of the launcher's programs in PATH that is it; an error says what they are instead.
Result<MpiProgram> find_mpi(const Launcher&, const MpiSearch&);
// An mpiexec that is in PATH, under whatever name, and the launcher it belongs to (null: none).
struct InstalledMpi {
  MpiProgram program;
  const Launcher* launcher = nullptr;
  std::string answer;  // what it is, or why that is not known; for a person
};
// All of them, those first that --launcher auto looks at first.
std::vector<InstalledMpi> installed_programs(const MpiSearch&);
// The launcher of the first that has one; asks no further.
const Launcher* installed_mpi(const MpiSearch&);

}  // namespace ezpz::launch
