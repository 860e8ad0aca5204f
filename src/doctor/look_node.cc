#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "doctor/look.h"
#include "site/scheduler.h"

namespace ezpz::doctor {
namespace {

// A list such as LD_LIBRARY_PATH; the loader takes both separators. Empty entries are the working
// folder there, which a job does not mean.
std::vector<std::string> path_list(const site::Environment& env, const char* name) {
  std::string text = site::get(env, name).value_or("");
  std::replace(text.begin(), text.end(), ';', ':');
  std::vector<std::string> list;
  for (std::string& entry : split(text, ':')) {
    if (!entry.empty() && list.size() < 256) list.push_back(std::move(entry));
  }
  return list;
}

std::vector<std::string> preload_list(const site::Environment& env) {
  std::string text = site::get(env, "LD_PRELOAD").value_or("");
  std::replace(text.begin(), text.end(), ':', ' ');
  return split_words(text);
}

bool answers(const PathAnswers& known, const std::string& path) {
  const auto found = known.find(path);
  return found != known.end() && found->second.answered;
}

std::map<std::string, std::string> loader_cache(const AskHelper& ask, double patience_s) {
  for (const char* program : {"ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"}) {
    if (find_program(program).empty()) continue;
    const HelperResult result = ask({program, "-p"}, patience_s);
    if (result.usable()) return parse_ldconfig(result.out);
  }
  return {};
}

// The folders of the search path that answer; the others are named in *silent.
SearchPath search_path(const site::Environment& env, const PathAnswers& known,
                       std::vector<std::string>* silent) {
  SearchPath search;
  search.preload = preload_list(env);
  for (const std::string& folder : path_list(env, "LD_LIBRARY_PATH")) {
    (answers(known, folder) ? &search.library_path : silent)->push_back(folder);
  }
  return search;
}

Seen<Python> look_at_python(const Seen<PythonAnswer>& answer, const SearchPath& search,
                            double patience_s) {
  if (!answer) return Seen<Python>::not_seen(answer.why_not());
  Python python;
  python.path = answer->path;
  python.version = answer->version;
  // The interpreter has just looked there, but with a time limit of its own.
  const PathAnswers known =
      ask_paths({answer->torch_folder + "/lib", answer->mpi4py_folder}, patience_s);
  python.torch = std::optional<Torch>();
  if (!answer->torch_folder.empty()) {
    python.torch = answers(known, answer->torch_folder + "/lib")
                       ? Seen<std::optional<Torch>>(look_at_torch(*answer, search))
                       : Seen<std::optional<Torch>>::not_seen(answer->torch_folder +
                                                              " did not answer in time");
  }
  python.mpi4py = std::optional<MpiUser>();
  if (!answer->mpi4py_folder.empty()) {
    if (!answers(known, answer->mpi4py_folder)) {
      python.mpi4py =
          Seen<std::optional<MpiUser>>::not_seen(answer->mpi4py_folder + " did not answer in time");
    } else if (answer->mpi4py_modules.empty()) {
      python.mpi4py =
          Seen<std::optional<MpiUser>>::not_seen("no MPI*.so in " + answer->mpi4py_folder);
    } else {
      // With several (one for each MPI) any of them may be the one that is loaded.
      std::optional<MpiUser> user;
      for (const std::string& module : answer->mpi4py_modules) {
        MpiUser one = look_at_mpi(module, search);
        if (!user || (user->gtl && !one.gtl)) user = std::move(one);
      }
      python.mpi4py = user;
    }
  }
  return python;
}

Seen<std::optional<MpiUser>> look_at_program(const Argv& command, const SearchPath& search) {
  if (command.empty() || !interpreter_of(command).empty()) return std::optional<MpiUser>();
  const std::string path = find_program(command[0]);
  if (path.empty()) {
    return Seen<std::optional<MpiUser>>::not_seen("no " + printable(command[0], 120) + " in PATH");
  }
  if (!read_elf(path)) return std::optional<MpiUser>();  // a script
  MpiUser user = look_at_mpi(path, search);
  if (user.mpi_libraries.empty()) return std::optional<MpiUser>();
  return std::optional<MpiUser>(std::move(user));
}

}  // namespace

NodeSight look_at_node(Loop& loop, const NodeRequest& request) {
  NodeSight sight;
  sight.hostname = site::own_hostname();
  sight.env = site::current_environment();
  const double patience_s = request.patience_s;
  const AskHelper ask = [&loop](const Argv& argv, double timeout_s) {
    return run_helper(loop, argv, timeout_s);
  };

  std::vector<std::string> paths = path_list(sight.env, "LD_LIBRARY_PATH");
  for (const std::string& path :
       {std::string("/dev/shm"), std::string("."), temporary_folder(sight.env)}) {
    paths.push_back(path);
  }
  const PathAnswers known = ask_paths(paths, patience_s);
  sight.limits = look_at_limits(sight.env, known);
  sight.gpus = look_at_gpus(ask, patience_s);

  SearchPath search = search_path(sight.env, known, &sight.libraries.silent_folders);
  search.cache = loader_cache(ask, patience_s);
  std::string interpreter = request.python;
  if (interpreter.empty()) interpreter = interpreter_of(request.command);
  if (interpreter.empty()) interpreter = "python3";
  const Seen<PythonAnswer> answer = ask_python(ask, interpreter, patience_s);
  sight.python = look_at_python(answer, search, patience_s);
  std::vector<std::string> silent = std::move(sight.libraries.silent_folders);
  sight.libraries = look_at_libraries(
      sight.env, search, answer ? answer->library_folders : std::vector<std::string>());
  sight.libraries.silent_folders = std::move(silent);
  sight.program = look_at_program(request.command, search);
  return sight;
}

}  // namespace ezpz::doctor
