// How `ezpz doctor` starts `ezpz doctor-node` on nodes.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"

namespace ezpz::app {

struct DoctorNodeRequest {
  std::string node;    // who it is; empty: it finds out itself
  std::string job_id;  // of the job; empty: none
  std::vector<std::string> resolve;
  std::vector<std::string> see;
  std::string machine;  // empty: an unknown one
  std::string machines_dir;
  std::string known_issues_dir;
  std::string python;
  long nodes = 0;          // that the job is to run on; 0: unknown
  double timeout_s = 12;   // for the report
  double patience_s = 10;  // for a tool or a file system
  std::string folder;      // only look at this folder: FolderSight
  bool inner = false;      // be the process that may hang
  Argv command;            // the user's
};

Argv doctor_node_argv(const std::string& self_path, const DoctorNodeRequest&);

}  // namespace ezpz::app
