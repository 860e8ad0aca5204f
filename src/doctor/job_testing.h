// Sights of healthy jobs for the tests of checks: each breaks one thing.
#pragma once

#include <string>
#include <vector>

#include "doctor/check_job.h"

namespace ezpz::doctor::job_testing {

// A SLURM job of four hosts on a machine that nobody knows, three of them active, an hour left.
inline JobSight slurm_job() {
  JobSight sight;
  sight.now_s = 1'796'000'000;
  sight.hostname = "nid1";
  sight.machine.name = "generic";
  sight.machine.title = "an unknown machine";
  site::Discovery& job = sight.job;
  job.scheduler = site::SchedulerKind::slurm;
  job.job_id = "57";
  job.hosts = {"nid1", "nid2", "nid3", "nid4"};
  job.environment_hosts = job.hosts;
  job.scheduler_hosts = job.hosts;
  job.states_known = 4;
  job.job_state = "RUNNING";
  job.job_phase = site::JobPhase::running;
  job.end_time_s = sight.now_s + 3600;
  job.no_kill = true;
  job.why = {{"scheduler", "SLURM_JOB_ID is set"}, {"job_state", "scontrol show job"},
             {"end_time_s", "scontrol show job"},  {"no_kill", "the job's batch script"},
             {"running_jobs", "squeue -u me"},     {"unfit_hosts", "scontrol"}};
  sight.job_variables = {{"SLURM_JOB_ID", "57"}};
  sight.programs = {{"scontrol", true}, {"squeue", true}, {"srun", true}};
  sight.launch.launcher = "srun";
  sight.launch.plan = "12 ranks on 3 hosts";
  sight.launch.pool = make_nodes(job.hosts, {});
  sight.launch.active = 3;
  sight.binary = {"/home/me/bin/ezpz", "nfs", false};
  FolderSight& logs = sight.log_dir;
  logs.path = logs.existing = "/scratch/me/logs";
  logs.writable = true;
  logs.free_bytes = 5e12;
  logs.total_bytes = 1e13;
  logs.file_system = "lustre";
  return sight;
}

inline JobSight pbs_job() {
  JobSight sight = slurm_job();
  site::Discovery& job = sight.job;
  job.scheduler = site::SchedulerKind::pbs;
  job.job_id = "9.server";
  job.node_file = "/var/spool/pbs/aux/9.server";
  sight.job_variables = {{"PBS_JOBID", "9.server"}};
  sight.programs = {{"qstat", true}, {"pbsnodes", true}};
  sight.launch.launcher = "pals";
  return sight;
}

// The only finding, or one that says how many there were.
inline Finding only(const Findings& findings) {
  if (findings.size() == 1) return findings[0];
  return {"", Health::unknown, std::to_string(findings.size()) + " findings", "", ""};
}

inline bool says(const Finding& finding, const std::string& text) {
  return finding.why.find(text) != std::string::npos;
}

}  // namespace ezpz::doctor::job_testing
