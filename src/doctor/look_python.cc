// What the user's Python would import, asked without importing it: `import torch` takes tens of
// seconds on a parallel file system, and runs code.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "doctor/look.h"

namespace ezpz::doctor {
namespace {

constexpr size_t kMostLine = 1U << 20U;
constexpr size_t kMostEntries = 256;
constexpr std::string_view kMark = "ezpz-python ";

// Finding the spec of a top-level module runs no code of it. The empty entry of sys.path is -c's
// own and not a script's.
constexpr const char* kQuestion = R"python(
import json, os, sys
from importlib import util
sys.path[:] = [p for p in sys.path if p]
def folder(name):
    try:
        spec = util.find_spec(name)
    except Exception:
        return ""
    if spec is None:
        return ""
    if spec.origin and os.path.isabs(spec.origin):
        return os.path.dirname(spec.origin)
    return (list(spec.submodule_search_locations or []) + [""])[0]
def names(path):
    try:
        return sorted(os.listdir(path))[:256]
    except OSError:
        return []
torch, mpi4py, nvidia = folder("torch"), folder("mpi4py"), folder("nvidia")
answer = {"version": "%d.%d.%d" % sys.version_info[:3], "torch": torch, "mpi4py": mpi4py}
answer["modules"] = [os.path.join(mpi4py, n) for n in names(mpi4py)
                     if mpi4py and n.startswith("MPI") and n.endswith(".so")]
answer["folders"] = ([os.path.join(torch, "lib")] if torch else []) + \
    [os.path.join(nvidia, n, "lib") for n in names(nvidia) if nvidia]
sys.stdout.write("ezpz-python " + json.dumps(answer) + "\n")
)python";

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<std::string> texts_at(const Json& json, const char* key) {
  std::vector<std::string> texts;
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return texts;
  for (const Json& entry : *found) {
    if (entry.is_string() && texts.size() < kMostEntries) texts.push_back(entry.get<std::string>());
  }
  return texts;
}

// The text between the quotes of `name = 'text'` or `name: Optional[str] = 'text'`; empty for None.
std::string assigned(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return "";
  const std::string_view rest = trim(line.substr(name.size()));
  if (rest.empty() || (rest[0] != '=' && rest[0] != ':')) return "";
  const size_t equals = rest.find('=');
  if (equals == std::string_view::npos) return "";
  const std::string_view value = trim(rest.substr(equals + 1));
  if (value.size() < 2 || (value[0] != '\'' && value[0] != '"')) return "";
  const size_t end = value.find(value[0], 1);
  return end == std::string_view::npos ? "" : std::string(value.substr(1, end - 1));
}

}  // namespace

std::string interpreter_of(const Argv& command) {
  for (const std::string& word : command) {
    const std::string name = word.substr(word.rfind('/') + 1);
    if (name == "env" || name.find('=') != std::string::npos) continue;  // env A=1 python ...
    const bool is_python =
        name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
    return is_python ? word : "";
  }
  return "";
}

Result<PythonAnswer> parse_python_answer(std::string_view output) {
  // A sitecustomize may have printed something before.
  const size_t at = output.rfind(kMark);
  if (at == std::string_view::npos) {
    return Error{"it did not answer our question", "", "does `python3 -c 'print(1)'` work?"};
  }
  std::string_view line = output.substr(at + kMark.size(), kMostLine);
  line = line.substr(0, line.find('\n'));
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return Error{"its answer is not whole", "", ""};
  PythonAnswer answer;
  answer.version = text_at(json, "version");
  answer.torch_folder = text_at(json, "torch");
  answer.mpi4py_folder = text_at(json, "mpi4py");
  answer.mpi4py_modules = texts_at(json, "modules");
  answer.library_folders = texts_at(json, "folders");
  return answer;
}

Seen<PythonAnswer> ask_python(const AskHelper& ask, const std::string& interpreter,
                              double patience_s) {
  const std::string path = find_program(interpreter);
  if (path.empty()) {
    return Seen<PythonAnswer>::not_seen("no " + printable(interpreter, 120) + " in PATH");
  }
  const HelperResult result = ask({interpreter, "-c", kQuestion}, patience_s);
  if (!result.usable()) return Seen<PythonAnswer>::not_seen(printable(result.trouble));
  Result<PythonAnswer> answer = parse_python_answer(result.out);
  if (!answer) {
    return Seen<PythonAnswer>::not_seen(printable(interpreter, 120) + ": " +
                                        answer.error().one_line());
  }
  answer->path = path;
  return *std::move(answer);
}

TorchVersion parse_torch_version(std::string_view version_py) {
  TorchVersion torch;
  for (const std::string& line : split_lines(version_py)) {
    const auto take = [&line](std::string_view name, std::string* target) {
      const std::string value = assigned(line, name);
      if (!value.empty()) *target = value;
    };
    take("__version__", &torch.version);
    take("cuda", &torch.cuda);
    take("hip", &torch.hip);
    take("xpu", &torch.xpu);
  }
  return torch;
}

}  // namespace ezpz::doctor
