#include "launch/plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>

#include "base/text.h"

namespace ezpz::launch {
namespace {

struct SignalName {
  int number;
  const char* name;
};
constexpr std::array<SignalName, 10> signal_names = {{{SIGHUP, "HUP"},
                                                      {SIGINT, "INT"},
                                                      {SIGQUIT, "QUIT"},
                                                      {SIGABRT, "ABRT"},
                                                      {SIGKILL, "KILL"},
                                                      {SIGUSR1, "USR1"},
                                                      {SIGUSR2, "USR2"},
                                                      {SIGTERM, "TERM"},
                                                      {SIGCONT, "CONT"},
                                                      {SIGSTOP, "STOP"}}};

std::vector<std::string> names_of(const std::vector<Launcher>& all) {
  std::vector<std::string> names = {"auto"};
  for (const Launcher& launcher : all) names.emplace_back(launcher.name);
  return names;
}

}  // namespace

const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> table = {
      {"srun", plan_srun, {}},
      {"pals", plan_pals, {"mpiexec"}},
      {"hydra", plan_hydra, {"mpiexec.hydra", "mpiexec.mpich", "mpiexec", "mpirun"}},
      {"openmpi", plan_openmpi, {"mpirun", "mpirun.openmpi", "mpiexec", "prterun"}},
      {"ssh", plan_ssh, {}},
      {"local", plan_local, {}}};
  return table;
}

const Launcher* find_launcher(std::string_view name) {
  for (const Launcher& launcher : launchers()) {
    if (launcher.name == name) return &launcher;
  }
  return nullptr;
}

Result<const Launcher*> choose_launcher(const LauncherWish& wish) {
  if (wish.asked != "auto") {
    if (const Launcher* launcher = find_launcher(wish.asked)) return launcher;
    const std::vector<std::string> names = names_of(launchers());
    const auto close = nearest(wish.asked, names);
    return Error{"this version has no launcher '" + printable(wish.asked) + "'", "--launcher",
                 (close ? "did you mean '" + *close + "'? " : "") + "known: " + join(names, ", ")};
  }
  if (wish.job == site::SchedulerKind::slurm) return find_launcher("srun");
  const bool in_job = wish.job != site::SchedulerKind::none;
  if (!in_job && !wish.has_hostfile) return find_launcher("local");
  // srun needs a SLURM job, whatever the machine's table says.
  const Launcher* suggested = find_launcher(wish.suggestion);
  if (suggested != nullptr && suggested->name != "srun") return suggested;
  if (const Launcher* found = wish.installed ? wish.installed() : nullptr) return found;
  // Hosts that somebody has listed are meant; to simulate them must be asked for.
  if (!in_job) return find_launcher(wish.has_ssh ? "ssh" : "local");
  // Not "local" by default: it would run the whole job on the first host without a word.
  return Error{
      "no launcher was found for a PBS job", wish.suggestion,
      "load the module that has mpiexec; --launcher ssh needs none, --launcher local runs on "
      "this host only"};
}

Argv signal_argv(int signal, const std::string& step_id) {
  std::string name = std::to_string(signal);
  for (const SignalName& row : signal_names) {
    if (row.number == signal) name = row.name;
  }
  return {"scancel", "--signal=" + name, step_id};
}

bool signalled_in_spite_of(std::string_view trouble) {
  return trouble.find("Invalid job id specified") != std::string_view::npos;
}

Argv cancel_argv(const std::string& step_id) { return {"scancel", step_id}; }

bool looks_secret(std::string_view variable_name) {
  static constexpr std::array<std::string_view, 7> words = {
      "TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "COOKIE", "CREDENTIAL"};
  std::string upper(variable_name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return upper.find(word) != std::string::npos; });
}

Argv mask_secrets(const Argv& argv) {
  static constexpr std::array<std::string_view, 8> words = {
      "token", "secret", "password", "passwd", "key", "apikey", "cookie", "credentials"};
  Argv masked = argv;
  for (size_t i = 0; i < masked.size(); ++i) {
    if (!masked[i].starts_with("--")) continue;
    const size_t equals = masked[i].find('=');
    const std::string name = lower(masked[i].substr(0, equals));
    const std::string last = name.substr(name.find_last_of("-_") + 1);
    if (std::find(words.begin(), words.end(), last) == words.end()) continue;
    if (equals != std::string::npos) {
      masked[i] = masked[i].substr(0, equals) + "=***";
    } else if (i + 1 < masked.size() && !masked[i + 1].starts_with("-")) {
      masked[i + 1] = "***";
    }
  }
  return masked;
}

std::string render(const Plan& plan) {
  std::string out = "launcher: " + plan.launcher + "\n";
  out += "command: " + shell_join(mask_secrets(plan.argv)) + "\n";
  out += "environment:\n";
  for (const auto& [name, value] : plan.env) {
    if (!value) {
      out += "  unset " + printable(name) + "\n";
    } else {
      out +=
          "  " + printable(name) + "=" + (looks_secret(name) ? "***" : shell_quote(*value)) + "\n";
    }
  }
  for (const PlanFile& file : plan.files) {
    out += "writes: " + printable(file.path) + "\n";
    for (const std::string& line : split_lines(file.text)) out += "  " + printable(line) + "\n";
  }
  out += "ranks:\n";
  for (const std::string& host : plan.host_order) {
    std::vector<int> here;
    for (const auto& [rank, place] : plan.host_of_rank) {
      if (place == host) here.push_back(rank);
    }
    out += "  " + printable(host) + ": " +
           (here.empty() ? std::string("as the launcher flags say") : ranges(here)) + "\n";
  }
  out += "master: " + printable(plan.master_addr);
  if (plan.master_port > 0) out += ":" + std::to_string(plan.master_port);
  return out + "\n";
}

}  // namespace ezpz::launch
