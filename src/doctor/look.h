// Parts of look_at_node(), which alone calls them. Each touches the system, bounded.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/process.h"
#include "doctor/answers.h"
#include "doctor/loader.h"
#include "doctor/node_sight.h"

namespace ezpz::doctor {

using PathAnswers = std::map<std::string, PathAnswer>;

Seen<Gpus> look_at_gpus(const AskHelper&, double patience_s);

// Where this process would put temporary files.
std::string temporary_folder(const site::Environment&);
Limits look_at_limits(const site::Environment&, const PathAnswers&);

// What the interpreter says of its torch and mpi4py, without importing either.
struct PythonAnswer {
  std::string path;
  std::string version;
  std::string torch_folder;                  // empty: it has none
  std::string mpi4py_folder;                 // empty: it has none
  std::vector<std::string> mpi4py_modules;   // MPI*.so
  std::vector<std::string> library_folders;  // torch/lib and nvidia/*/lib
};
Seen<PythonAnswer> ask_python(const AskHelper&, const std::string& interpreter, double patience_s);
// One line of JSON, as our own question has it printed.
Result<PythonAnswer> parse_python_answer(std::string_view output);
// The interpreter of a command such as {"python3", "train.py"}; empty: it begins with none.
std::string interpreter_of(const Argv& command);

// The values in torch/version.py. Empty ones are None there.
struct TorchVersion {
  std::string version;
  std::string cuda;
  std::string hip;
  std::string xpu;
};
TorchVersion parse_torch_version(std::string_view version_py);

Torch look_at_torch(const PythonAnswer&, const SearchPath&);
MpiUser look_at_mpi(const std::string& module, const SearchPath&);
Libraries look_at_libraries(const site::Environment&, const SearchPath&,
                            const std::vector<std::string>& loaded_folders);

}  // namespace ezpz::doctor
