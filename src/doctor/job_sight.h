// What is to be seen of the job and its site from the host that doctor runs on. Filled by
// look_job.h, judged by check_job.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/node.h"
#include "base/result.h"
#include "doctor/lustre.h"
#include "site/machine.h"
#include "site/scheduler.h"

namespace ezpz::doctor {

struct HostfileSight {
  std::string path;
  std::optional<Error> error;  // it cannot be read, or says nothing
  std::vector<Node> hosts;
  std::vector<std::string> duplicates;
};

// What `ezpz launch` with these flags would do.
struct LaunchSight {
  std::string asked = "auto";           // --launcher
  std::string launcher;                 // that it would take; empty: it would take none
  std::string program;                  // an mpiexec's path; empty: by name
  std::optional<Error> launcher_error;  // no launcher, or its program is not here
  std::optional<Error> plan_error;      // any other reason why it would start nothing
  std::string plan;                     // "8 ranks on 2 hosts"; empty: there is none
  std::vector<Node> pool;               // hosts that may be used, the active first
  std::optional<size_t> active;         // nothing: how many are to be active was not said
};

// Of the folder itself, or of the nearest one above it that is there already.
struct FolderSight {
  std::string path;      // as it will be, absolute
  std::string existing;  // what was looked at
  std::string trouble;   // why it could not be looked at; empty: it could
  bool is_folder = true;
  bool writable = false;  // a file was made there, and taken away again
  std::string write_error;
  double free_bytes = 0;
  double total_bytes = 0;
  double free_files = 0;
  double total_files = 0;   // 0: the file system does not count them
  std::string file_system;  // "lustre", "tmpfs"; empty: not told
  bool in_memory = false;
  std::optional<LustreSight> lustre;
  std::string
      lustre_trouble;  // why lfs could not be asked; empty: it was, or there was no reason to
};

struct BinarySight {
  std::string path;
  std::string file_system;
  bool in_memory = false;
};

struct JobSight {
  double now_s = 0;
  std::string hostname;
  site::Machine machine;
  bool machine_known = false;
  site::Discovery job;
  std::map<std::string, std::string> job_variables;  // SLURM_JOB_ID, PBS_JOBID that are set
  std::map<std::string, bool> programs;              // the scheduler's commands: in PATH?
  std::optional<std::string> batch_script;           // SLURM tells it
  std::optional<HostfileSight> hostfile;             // --hostfile
  LaunchSight launch;
  FolderSight log_dir;
  BinarySight binary;
  bool nodes_were_asked = false;  // --all-nodes: what nodes say themselves is not guessed
};

}  // namespace ezpz::doctor
