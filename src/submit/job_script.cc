#include "submit/job_script.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/flags.h"
#include "base/text.h"
#include "launch/plan.h"

namespace ezpz::submit {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// The parsers of #SBATCH and #PBS lines have rules of their own for quotes, blanks and '#'.
bool fits_a_directive(std::string_view value) {
  constexpr std::string_view kSpecial = " \"'\\#$`;";
  return std::all_of(value.begin(), value.end(), [&](char c) {
    return !is_control(c) && kSpecial.find(c) == std::string_view::npos;
  });
}

std::string clock(double seconds) {
  const long s = static_cast<long>(seconds);
  return fmt::format("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// The directives of one scheduler, in the order they are to be read.
class Directives {
 public:
  explicit Directives(std::string mark) : mark_(std::move(mark)) {}

  // flag is "--name=" for a value in one word, "-A" for one in the next word.
  void add(const std::string& flag, const std::string& value) {
    const bool one_word = flag.back() == '=';
    if (fits_a_directive(value)) {
      text_ += mark_ + " " + flag + (one_word ? "" : " ") + value + "\n";
    } else if (one_word) {
      others_.push_back(flag + value);
    } else {
      others_.insert(others_.end(), {flag, value});
    }
  }
  void add_given(const std::string& flag, const std::string& value) {
    if (!value.empty()) add(flag, value);
  }
  void add(const std::string& flag) { text_ += mark_ + " " + flag + "\n"; }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const Argv& others() const { return others_; }

 private:
  std::string mark_;
  std::string text_;
  Argv others_;
};

Status check(const JobRequest& job) {
  if (job.spares >= job.nodes) {
    return Error{fmt::format("{} spares leave no active node of {}", job.spares, job.nodes),
                 "--spares", "-N is the number of nodes in all"};
  }
  if (job.command.empty()) return Error{"no command given", "", "ezpz submit [flags] -- CMD ..."};
  if (job.command[0].empty() || job.command[0][0] == '-') {
    return Error{"not a command: " + printable(job.command[0], 80), "",
                 "ezpz submit [flags] [-- scheduler flags] -- CMD ..."};
  }
  const std::pair<const char*, const std::string*> texts[] = {
      {"--job-name", &job.name},         {"--queue", &job.queue},
      {"--partition", &job.partition},   {"--account", &job.account},
      {"--constraint", &job.constraint}, {"--filesystems", &job.filesystems},
      {"--log-dir", &job.log_dir},       {"the working directory", &job.working_dir},
  };
  for (const auto& [where, text] : texts) {
    if (std::any_of(text->begin(), text->end(), is_control)) {
      return Error{"a control character in " + printable(*text, 80), where, ""};
    }
  }
  return success();
}

bool is_own_launch(const Argv& command) {
  const std::string& program = command[0];
  const bool ezpz = program.substr(program.rfind('/') + 1) == "ezpz";
  return ezpz && command.size() > 1 && command[1] == "launch";
}

// What the job becomes.
Result<Argv> launch_words(const JobRequest& job) {
  if (is_own_launch(job.command)) {
    if (job.spares > 0 || job.ranks_per_node || !job.require_net.empty()) {
      return Error{"the command is an ezpz launch already",
                   job.spares > 0       ? "--spares"
                   : job.ranks_per_node ? "--ppn"
                                        : "--require-net",
                   "give it to that launch, or submit the program itself"};
    }
    return job.command;
  }
  Argv words = {job.self_path, "launch", "--auto-retry", "--nhosts",
                std::to_string(job.nodes - job.spares)};
  if (job.ranks_per_node) {
    words.insert(words.end(), {"--ppn", std::to_string(*job.ranks_per_node)});
  }
  if (!job.require_net.empty()) words.insert(words.end(), {"--require-net", job.require_net});
  words.insert(words.end(), {"--log-dir", job.log_dir, "--"});
  words.insert(words.end(), job.command.begin(), job.command.end());
  return words;
}

std::string bash_words(const Argv& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + bash_word(word);
  return line;
}

std::string said_line(const std::string& name, const std::string& value) {
  return "  " + bash_word(fmt::format("{:<12} {}", name, value)) + " \\\n";
}

// What the job resolved to, printed by the job itself.
std::string configuration(const JobRequest& job) {
  const auto or_default = [](const std::string& value) {
    return value.empty() ? std::string("(the scheduler's default)") : value;
  };
  std::string text = "printf '  %s\\n' \\\n";
  text += said_line("nodes", is_own_launch(job.command)
                                 ? fmt::format("{} (split by the launch below)", job.nodes)
                                 : fmt::format("{} ({} active, {} spare)", job.nodes,
                                               job.nodes - job.spares, job.spares));
  text += said_line("time", job.time_s ? clock(*job.time_s) : or_default(""));
  text += said_line("queue", or_default(job.queue));
  text += said_line("account", or_default(job.account));
  text += said_line("modules", job.modules.empty() ? "(none)" : join(job.modules, " "));
  text += said_line("venv", job.venv.empty() ? "(none)" : job.venv);
  text += "  " + bash_word("command      " + bash_words(launch::mask_secrets(job.command))) + "\n";
  for (const auto& [name, value] : job.env) {
    text += (launch::looks_secret(name) ? "show_only_if_set " : "show ") + name + "\n";
  }
  for (const char* name : {"VIRTUAL_ENV", "LOADEDMODULES"}) {
    if (job.env.count(name) == 0) text += std::string("show ") + name + "\n";
  }
  return text;
}

Result<JobScript> write(const JobRequest& job, const Directives& directives, Argv submit) {
  const Result<Argv> launch = launch_words(job);
  if (!launch) return launch.error();
  JobScript script;
  script.submit = std::move(submit);
  script.submit.insert(script.submit.end(), directives.others().begin(), directives.others().end());
  script.submit.insert(script.submit.end(), job.scheduler_flags.begin(), job.scheduler_flags.end());

  std::string& text = script.text;
  text = "#!/bin/bash -l\n";
  text += "# Written by ezpz submit. To submit it again:\n";
  text += "#   " + bash_words(script.submit) + " THIS_FILE\n";
  text += directives.text() + "\n";
  text += "set -e\n";
  text += "cd " + bash_word(job.working_dir) + "\n";
  for (const std::string& module : job.modules) text += "module load " + bash_word(module) + "\n";
  if (!job.venv.empty()) text += "source " + bash_word(job.venv + "/bin/activate") + "\n";
  for (const auto& [name, value] : job.env) {
    text += value ? "export " + name + "=" + bash_word(*value) + "\n" : "unset " + name + "\n";
  }
  text +=
      "\n# What this job resolved to. A variable that is empty is not one that is unset.\n"
      "show() {\n"
      "  if [ -n \"${!1+set}\" ]; then\n"
      "    printf '  %s=%q\\n' \"$1\" \"${!1}\"\n"
      "  else\n"
      "    printf '  %s is unset\\n' \"$1\"\n"
      "  fi\n"
      "}\n";
  const bool secrets = std::any_of(job.env.begin(), job.env.end(), [](const auto& variable) {
    return launch::looks_secret(variable.first);
  });
  if (secrets) {
    text +=
        "show_only_if_set() {\n"
        "  if [ -n \"${!1}\" ]; then printf '  %s is set, and not shown\\n' \"$1\"; else show "
        "\"$1\"; fi\n"
        "}\n";
  }
  text += "echo 'ezpz submit: this job'\n" + configuration(job);
  text += "\n# The batch shell becomes ezpz: what the scheduler signals reaches it.\n";
  text += "exec " + bash_words(*launch) + "\n";
  return script;
}

// A path in which the scheduler must not see patterns of its own.
std::string without_patterns(const std::string& path) {
  std::string out;
  for (const char c : path) out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

}  // namespace

Result<JobScript> write_slurm_script(const JobRequest& job) {
  if (Status ok = check(job); !ok) return ok.error();
  if (!job.filesystems.empty()) {
    return Error{"only PBS is told of file systems", "--filesystems", "leave it out under SLURM"};
  }
  Directives d("#SBATCH");
  d.add("--job-name=", job.name);
  d.add("--nodes=", std::to_string(job.nodes));
  if (job.time_s) d.add("--time=", clock(*job.time_s));
  d.add_given("--qos=", job.queue);
  d.add_given("--partition=", job.partition);
  d.add_given("--account=", job.account);
  d.add_given("--constraint=", job.constraint);
  if (job.gpus_per_node.value_or(0) > 0) {
    d.add("--gpus-per-node=", std::to_string(*job.gpus_per_node));
  }
  d.add("--exclusive");
  d.add("--no-kill");
  if (job.signal_before_end_s > 0) {
    d.add("--signal=", fmt::format("B:USR1@{}", static_cast<long>(job.signal_before_end_s)));
  }
  d.add("--output=", without_patterns(job.log_dir) + "/%x-%j.out");
  return write(job, d, {"sbatch", "--parsable"});
}

Result<JobScript> write_pbs_script(const JobRequest& job) {
  if (Status ok = check(job); !ok) return ok.error();
  for (const auto& [where, text] :
       {std::pair("--constraint", &job.constraint), std::pair("--partition", &job.partition)}) {
    if (text->empty()) continue;
    return Error{"PBS has no such thing", where,
                 "queues are --queue; for more: -- -l NAME=VALUE --"};
  }
  Directives d("#PBS");
  std::string select = "select=" + std::to_string(job.nodes);
  if (!job.select.empty()) select += ":" + job.select;
  if (job.gpus_per_node.value_or(0) > 0) select += fmt::format(":ngpus={}", *job.gpus_per_node);
  d.add("-N", job.name);
  d.add("-l", select);
  d.add("-l", "place=" + job.place);
  if (job.time_s) d.add("-l", "walltime=" + clock(*job.time_s));
  if (!job.filesystems.empty()) d.add("-l", "filesystems=" + job.filesystems);
  d.add_given("-q", job.queue);
  d.add_given("-A", job.account);
  d.add("-W", "tolerate_node_failures=all");
  d.add("-j", "oe");
  d.add("-o", job.log_dir + "/");
  return write(job, d, {"qsub"});
}

std::string default_name(const Argv& command) {
  const auto stem = [](const std::string& word) { return word.substr(word.rfind('/') + 1); };
  std::string name = command.empty() ? "" : stem(command[0]);
  for (const std::string& word : command) {
    const size_t dot = word.rfind('.');
    if (dot == std::string::npos || (word.substr(dot) != ".py" && word.substr(dot) != ".sh")) {
      continue;
    }
    name = stem(word.substr(0, dot));
    break;
  }
  std::string plain;
  for (const char c : name) {
    const bool ok = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    plain += ok ? c : '_';
  }
  plain = plain.substr(0, 40);
  // PBS wants a letter first.
  const bool letter = !plain.empty() && std::isalpha(static_cast<unsigned char>(plain[0])) != 0;
  return letter ? plain : "job" + (plain.empty() ? "" : "_" + plain);
}

std::optional<double> parse_time(std::string_view text) {
  constexpr double kDay_s = 86400;
  constexpr double kMost_s = 10000 * kDay_s;
  std::optional<double> seconds;
  if (text.find(':') == std::string_view::npos) {
    if (text.empty() || std::isalpha(static_cast<unsigned char>(text.back())) == 0) return seconds;
    if (text.back() == 'd') {
      const auto days = parse_double(text.substr(0, text.size() - 1));
      if (days) seconds = *days * kDay_s;
    } else {
      seconds = parse_duration_s(text);
    }
  } else {
    double whole = 0;
    if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
      const auto days = parse_int(text.substr(0, dash));
      if (!days || *days < 0) return std::nullopt;
      whole = static_cast<double>(*days) * kDay_s;
      text.remove_prefix(dash + 1);
    }
    const std::vector<std::string> parts = split(text, ':');
    if (parts.size() != 3) return std::nullopt;
    double unit_s = 3600;
    for (const std::string& part : parts) {
      const auto number = parse_int(part);
      if (!number || *number < 0) return std::nullopt;
      whole += static_cast<double>(*number) * unit_s;
      unit_s /= 60;
    }
    seconds = whole;
  }
  if (!seconds || !(*seconds >= 1) || *seconds > kMost_s) return std::nullopt;
  return seconds;
}

std::string bash_word(std::string_view word) {
  if (std::none_of(word.begin(), word.end(), is_control)) return shell_quote(word);
  std::string out = "$'";
  for (const char c : word) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_control(c)) {
      out += fmt::format("\\{:03o}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "'";
}

Result<std::string> read_job_id(std::string_view printed) {
  // The last line: sites print advice before it.
  const std::vector<std::string> lines = split_lines(trim(printed));
  std::string id = lines.empty() ? "" : std::string(trim(lines.back()));
  id = id.substr(0, id.find(';'));
  const bool plain = !id.empty() && std::isdigit(static_cast<unsigned char>(id[0])) != 0 &&
                     std::all_of(id.begin(), id.end(), [](char c) {
                       return std::isgraph(static_cast<unsigned char>(c)) != 0;
                     });
  if (plain) return id;
  return Error{"the scheduler printed no job id", printable(trim(printed), 200),
               "see with squeue or qstat whether the job is there before submitting it again"};
}

}  // namespace ezpz::submit
