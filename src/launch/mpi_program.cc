#include "launch/mpi_program.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "base/words.h"

namespace ezpz::launch {
namespace {

struct Row {
  MpiKind kind;
  const char* name;      // for a person
  const char* launcher;  // whose it is
};
constexpr Row rows[] = {
    {MpiKind::unknown, "of an unknown kind", ""}, {MpiKind::hydra, "MPICH's Hydra", "hydra"},
    {MpiKind::intel, "Intel MPI", "hydra"},       {MpiKind::openmpi, "Open MPI", "openmpi"},
    {MpiKind::prrte, "PRRTE", "openmpi"},         {MpiKind::pals, "HPE Cray PALS", "pals"}};

const Row& row_of(MpiKind kind) {
  return *std::find_if(std::begin(rows), std::end(rows),
                       [kind](const Row& row) { return row.kind == kind; });
}

bool holds(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

MpiKind kind_of(const std::string& path, const MpiSearch& search, std::string* trouble) {
  const HelperResult answer = search.ask({path, "--version"}, kVersionTimeout_s);
  if (!answer.started || answer.timed_out) {
    *trouble = path + ": " + (answer.trouble.empty() ? "no answer" : answer.trouble);
    return MpiKind::unknown;
  }
  // Some tell their version on stderr, some with a bad exit code.
  const MpiKind kind = mpi_kind(answer.out + "\n" + answer.err, search.resolve(path));
  *trouble = path + " is " + row_of(kind).name;
  return kind;
}

constexpr const char* program_names[] = {"mpiexec", "mpirun", "mpiexec.hydra", "mpirun.openmpi"};

InstalledMpi ask_program(const std::string& path, const MpiSearch& search) {
  InstalledMpi found{{path, MpiKind::unknown}, nullptr, ""};
  found.program.kind = kind_of(path, search, &found.answer);
  found.launcher = find_launcher(row_of(found.program.kind).launcher);
  return found;
}

}  // namespace

std::string_view to_string(MpiKind kind) { return row_of(kind).name; }

MpiKind mpi_kind(std::string_view version_output, const std::string& real_path) {
  const std::string_view head = version_output.substr(0, 4096);
  if (holds(head, "Intel(R) MPI")) return MpiKind::intel;
  if (holds(head, "(OpenRTE)") || holds(head, "(Open MPI)")) return MpiKind::openmpi;
  if (holds(head, "HYDRA build details") || holds(head, "MPICH")) return MpiKind::hydra;
  if (holds(head, "(PRRTE)") || holds(head, "PMIx Reference R")) return MpiKind::prrte;
  if (holds(head, "PALS") || holds(real_path, "/pals/")) return MpiKind::pals;
  return MpiKind::unknown;
}

MpiSearch search_here(AskHelper ask) {
  return {find_program,
          [](const std::string& path) {
            std::error_code error;
            const auto real = std::filesystem::canonical(path, error);
            return error ? path : real.string();
          },
          std::move(ask)};
}

Result<MpiProgram> find_mpi(const Launcher& launcher, const MpiSearch& search) {
  std::vector<std::string> seen;
  for (const std::string& name : launcher.programs) {
    const std::string path = search.find(name);
    if (path.empty()) continue;
    std::string trouble;
    const MpiKind kind = kind_of(path, search, &trouble);
    if (row_of(kind).launcher == launcher.name) return MpiProgram{path, kind};
    seen.push_back(trouble);
  }
  const std::string wanted = "no mpiexec of " + std::string(launcher.name) + " in PATH";
  if (seen.empty()) {
    return Error{wanted, join(launcher.programs, ", "), "load the module that has it"};
  }
  return Error{wanted, printable(join(seen, "; "), 300),
               "load the right module, or choose another --launcher"};
}

std::vector<InstalledMpi> installed_programs(const MpiSearch& search) {
  std::vector<InstalledMpi> found;
  for (const char* name : program_names) {
    const std::string path = search.find(name);
    if (!path.empty()) found.push_back(ask_program(path, search));
  }
  return found;
}

const Launcher* installed_mpi(const MpiSearch& search) {
  for (const char* name : program_names) {
    const std::string path = search.find(name);
    if (path.empty()) continue;
    const Launcher* launcher = ask_program(path, search).launcher;
    if (launcher != nullptr) return launcher;
  }
  return nullptr;
}

}  // namespace ezpz::launch
