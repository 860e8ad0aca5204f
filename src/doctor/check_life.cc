// How long the job lives: past a lost node, until its end, and who hears of that.
#include <fmt/core.h>

#include "base/clock.h"
#include "base/text.h"
#include "doctor/check_job.h"
#include "doctor/text_of_hosts.h"

namespace ezpz::doctor {
namespace {

using site::SchedulerKind;

constexpr double kShort_s = 15 * 60;

// The argument of the script's --signal; empty: it asks for none.
std::string asked_signal(const std::string& script) {
  std::string found;
  for (const std::string& line : split_lines(script)) {
    const std::string_view text = trim(line);
    if (text.rfind("#SBATCH", 0) != 0) {
      if (!text.empty() && text[0] != '#') break;  // sbatch stops reading at the first command
      continue;
    }
    const std::vector<std::string> words = split_words(text);
    for (size_t i = 1; i < words.size() && words[i][0] != '#'; ++i) {
      if (words[i].rfind("--signal=", 0) == 0) found = words[i].substr(9);
      if (words[i] == "--signal" && i + 1 < words.size()) found = words[i + 1];
    }
  }
  return found;
}

// Does the shell become its program, or do something of its own on a signal?
bool shell_passes_signals_on(const std::string& script) {
  for (const std::string& line : split_lines(script)) {
    const std::vector<std::string> words = split_words(line);
    if (!words.empty() && (words[0] == "exec" || words[0] == "trap")) return true;
  }
  return false;
}

}  // namespace

Findings check_no_kill(const JobSight& sight) {
  constexpr const char* kName = "no-kill";
  const site::Discovery& job = sight.job;
  if (!job.in_job() || job.job_is_unknown) return {};
  const bool pbs = job.scheduler == SchedulerKind::pbs;
  const std::string flag = pbs ? "-W tolerate_node_failures=all" : "--no-kill";
  const std::string remedy = "submit with " + flag + " (ezpz submit does)";
  if (job.hosts.size() == 1) {
    return {{kName, Health::ok, "one host: there is nothing to outlive", "", ""}};
  }
  const auto why = job.why.find("no_kill");
  const std::string source = why == job.why.end() ? "" : " (" + why->second + ")";
  if (job.no_kill) {
    if (*job.no_kill) {
      return {{kName, Health::ok, "the job outlives a lost node" + source, "", ""}};
    }
    return {{kName, Health::warning,
             "the scheduler ends this job with its first lost node, spares or not" + source, remedy,
             ""}};
  }
  if (!pbs && sight.batch_script) {
    return {
        {kName, Health::warning,
         "the batch script does not ask for --no-kill: unless sbatch itself was given it, which "
         "SLURM shows nowhere, the job ends with its first lost node",
         "put it into the script: #SBATCH --no-kill", ""}};
  }
  return {
      {kName, Health::unknown, "nobody tells whether the job outlives a lost node", remedy, ""}};
}

Findings check_time_left(const JobSight& sight) {
  constexpr const char* kName = "time-left";
  const site::Discovery& job = sight.job;
  if (!job.in_job() || job.job_is_unknown) return {};
  const auto why = job.why.find("end_time_s");
  const std::string source = why == job.why.end() ? "" : " (" + why->second + ")";
  const auto left_s = job.time_left_s(sight.now_s);
  if (!left_s) {
    return {{kName, Health::unknown, "when the job ends is not known" + source,
             "without it ezpz cannot tell a time limit from a crash, nor when a relaunch is too "
             "late: give the job a time limit",
             ""}};
  }
  const std::string text = human_duration(*left_s) + " left" + source;
  if (*left_s < kShort_s) {
    return {{kName, Health::warning, text + ": hardly enough for a relaunch and a checkpoint",
             "start a new job for anything longer, or have checkpoints at hand", ""}};
  }
  return {{kName, Health::ok, text, "", ""}};
}

Findings check_end_signal(const JobSight& sight) {
  constexpr const char* kName = "end-signal";
  if (!sight.job.in_job() || sight.job.scheduler != SchedulerKind::slurm) return {};
  if (!sight.batch_script) return {};
  const std::string asked = asked_signal(*sight.batch_script);
  if (asked.empty()) {
    return {{kName, Health::ok,
             "none is asked for: ranks hear of the end by SIGTERM, KillWait before SIGKILL", "",
             ""}};
  }
  const std::string text = "--signal=" + printable(asked, 60);
  // "[R][B][:]<signal>[@time]"
  const bool to_shell = asked.substr(0, asked.find(':')).find('B') != std::string::npos &&
                        asked.find(':') != std::string::npos;
  if (to_shell && !shell_passes_signals_on(*sight.batch_script)) {
    return {{kName, Health::warning,
             text + " goes to the batch shell alone, which dies of it or waits: no rank hears it",
             "start ezpz by `exec ezpz launch ...`, set a trap that passes it on, or leave B: out",
             "https://slurm.schedmd.com/sbatch.html#OPT_signal"}};
  }
  return {{kName, Health::ok, text + (to_shell ? ", which the script passes on" : ""), "", ""}};
}

}  // namespace ezpz::doctor
