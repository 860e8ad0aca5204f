// Who runs jobs here, does it answer, and do the environment and the scheduler agree?
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/check_job.h"
#include "doctor/text_of_hosts.h"
#include "site/pbs.h"

namespace ezpz::doctor {
namespace {

using site::JobPhase;
using site::SchedulerKind;

std::string variable_of(const JobSight& sight) {
  return sight.job.scheduler == SchedulerKind::pbs ? "PBS_JOBID" : "SLURM_JOB_ID";
}

std::string name_of(SchedulerKind kind) { return kind == SchedulerKind::pbs ? "PBS" : "SLURM"; }

bool answered(const JobSight& sight) {
  return sight.job.job_state.has_value() || sight.job.job_is_unknown ||
         sight.job.why.count("running_jobs") != 0;
}

// The batch script of a job that has none is no trouble of the scheduler's.
std::string first_trouble(const site::Discovery& job) {
  for (const std::string& line : job.trouble) {
    if (line.find("batch_script") == std::string::npos &&
        line.find("job script") == std::string::npos) {
      return printable(line, 120);
    }
  }
  return "";
}

// A job that is in two schedulers' variables under two numbers is one job too many. PBS look-alikes
// on SLURM sites set both to the same.
bool names_two_jobs(const JobSight& sight) {
  const auto slurm = sight.job_variables.find("SLURM_JOB_ID");
  const auto pbs = sight.job_variables.find("PBS_JOBID");
  if (slurm == sight.job_variables.end() || pbs == sight.job_variables.end()) return false;
  return site::pbs::parse_job_id(pbs->second).sequence != slurm->second;
}

}  // namespace

Findings check_scheduler(const JobSight& sight) {
  constexpr const char* kName = "scheduler";
  const SchedulerKind kind = sight.job.scheduler;
  if (kind == SchedulerKind::none) {
    const std::string& expected = sight.machine.scheduler;
    if (sight.machine_known && !expected.empty()) {
      return {{kName, Health::warning,
               sight.machine.title + " is run by " + expected +
                   ", of which neither commands nor a job are seen here",
               "go to a login node, or load the module that has the scheduler's commands", ""}};
    }
    return {{kName, Health::ok, "none here: this machine alone", "", ""}};
  }
  if (names_two_jobs(sight)) {
    const std::string& slurm = sight.job_variables.at("SLURM_JOB_ID");
    const std::string& pbs = sight.job_variables.at("PBS_JOBID");
    return {{kName, Health::warning,
             "the environment is in two jobs at once: SLURM_JOB_ID=" + printable(slurm, 60) +
                 ", PBS_JOBID=" + printable(pbs, 80) + "; SLURM's is taken",
             "unset the variable of the job that this is not", ""}};
  }
  std::vector<std::string> missing;
  for (const auto& [program, is_there] : sight.programs) {
    if (!is_there) missing.push_back(program);
  }
  if (!missing.empty()) {
    return {{kName, Health::warning,
             "the environment has a " + name_of(kind) + " job, but not in PATH: " +
                 join(missing, ", ") + "; node states and the job's end cannot be asked for",
             "load the module that has the scheduler's commands, or add their folder to PATH", ""}};
  }
  if (!answered(sight)) {
    const std::string trouble = first_trouble(sight.job);
    return {{kName, Health::unknown,
             name_of(kind) + " did not answer" + (trouble.empty() ? "" : ": " + trouble),
             "try again; if it lasts, ezpz runs on what the environment says and finds losses "
             "later",
             ""}};
  }
  return {{kName, Health::ok, name_of(kind) + " answers (" + sight.job.why.at("scheduler") + ")",
           "", ""}};
}

Findings check_job(const JobSight& sight) {
  constexpr const char* kName = "job";
  const site::Discovery& job = sight.job;
  if (job.scheduler == SchedulerKind::none) return {};
  if (!job.in_job()) {
    std::string why = "not in a job: what depends on one was not looked at";
    if (!job.running_jobs.empty()) {
      why += "; running: " + printable(join(job.running_jobs, ", "), 100);
    }
    return {{kName, Health::ok, why, "", ""}};
  }
  const std::string id = printable(job.job_id, 80);
  const std::string stale = "leave this shell and start a new allocation, or unset " +
                            variable_of(sight) + " to work outside of any job";
  if (job.job_is_unknown) {
    return {{kName, Health::error,
             variable_of(sight) + " says " + id +
                 ", but the scheduler knows no such job: this "
                 "environment has outlived it",
             stale, ""}};
  }
  if (!job.job_state) {
    return {
        {kName, Health::unknown, "what the scheduler thinks of job " + id + " is not known",
         "try again, or ask by hand: " +
             std::string(job.scheduler == SchedulerKind::pbs ? "qstat -f " : "scontrol show job ") +
             id,
         ""}};
  }
  const std::string state = printable(*job.job_state, 40);
  switch (job.job_phase) {
    case JobPhase::running:
      return {{kName, Health::ok, id + " is running (" + job.why.at("job_state") + ")", "", ""}};
    case JobPhase::ending:
      return {{kName, Health::error,
               "job " + id + " of this environment is over or being ended: state " + state, stale,
               ""}};
    case JobPhase::waiting:
      return {{kName, Health::error, "job " + id + " does not run: state " + state,
               "wait until the scheduler has started (or resumed) it", ""}};
    case JobPhase::unknown:
      break;
  }
  return {{kName, Health::unknown, "job " + id + " is in a state that is not known here: " + state,
           "ask the scheduler by hand", ""}};
}

Findings check_job_hosts(const JobSight& sight) {
  constexpr const char* kName = "job-hosts";
  const site::Discovery& job = sight.job;
  if (!job.in_job() || job.job_is_unknown || job.job_phase == JobPhase::ending) return {};
  const bool pbs = job.scheduler == SchedulerKind::pbs;
  const std::string variable = pbs ? "PBS_NODEFILE" : "SLURM_JOB_NODELIST";
  if (job.hosts.empty()) {
    return {{kName, Health::unknown, "neither the environment nor the scheduler tells the hosts",
             "give them to ezpz launch with --hostfile", ""}};
  }
  if (job.environment_hosts.empty()) {
    return {{kName, Health::warning,
             variable + " does not tell the job's hosts; the scheduler does: " +
                 text_of_hosts(job.scheduler_hosts),
             "start ezpz in the job's own shell, not in one that was entered through ssh", ""}};
  }
  if (job.scheduler_hosts.empty()) {
    return {{kName, Health::unknown,
             variable + " names " + count_of(job.environment_hosts.size(), "host") +
                 "; the scheduler did not tell which it thinks they are",
             "try again when the scheduler answers", ""}};
  }
  const NodeNaming& naming = sight.machine.naming;
  const auto keys = [&](const std::vector<std::string>& hosts) {
    std::map<std::string, std::string> found;
    for (const std::string& host : hosts) found.emplace(node_key(host, naming), host);
    return found;
  };
  const auto told = keys(job.environment_hosts);
  const auto known = keys(job.scheduler_hosts);
  std::vector<std::string> gone;
  std::vector<std::string> added;
  for (const auto& [key, host] : told) {
    if (known.count(key) == 0) gone.push_back(host);
  }
  for (const auto& [key, host] : known) {
    if (told.count(key) == 0) added.push_back(host);
  }
  if (gone.empty() && added.empty()) {
    return {{kName, Health::ok,
             variable + " and the scheduler name the same " + count_of(known.size(), "host"), "",
             ""}};
  }
  std::string why = variable + " and the scheduler disagree:";
  if (!gone.empty()) why += " " + text_of_hosts(gone) + " left the job";
  if (!gone.empty() && !added.empty()) why += ",";
  if (!added.empty()) why += " " + text_of_hosts(added) + " is not in the environment";
  return {{kName, Health::warning, why,
           gone.empty()
               ? "start ezpz in the job's own shell; only the environment's hosts are used "
                 "by other programs"
               : "ezpz launch uses what the scheduler says; a plain " +
                     std::string(pbs ? "mpiexec" : "srun") + " must leave those hosts out",
           ""}};
}

Findings check_heterogeneous(const JobSight& sight) {
  if (!sight.job.in_job()) return {};
  if (!sight.job.heterogeneous) {
    // Nobody says that a job is not; SLURM's own word for it would have been seen.
    if (!sight.job.job_state) return {};
    return {{"heterogeneous", Health::ok, "one set of resources", "", ""}};
  }
  const auto why = sight.job.why.find("heterogeneous");
  return {{"heterogeneous", Health::error,
           "this is a heterogeneous job" +
               (why == sight.job.why.end() ? std::string() : " (" + why->second + ")") +
               ", which ezpz launch refuses",
           "submit it with one set of resources", ""}};
}

}  // namespace ezpz::doctor
