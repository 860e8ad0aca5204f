// Looks at what check_job.h judges, as far as discovery (site/scheduler.h) and look_folder.h do
// not: the hostfile, the binary, the batch script, the environment.
#pragma once

#include <optional>
#include <string>

#include "base/process.h"
#include "doctor/job_sight.h"

namespace ezpz::doctor {

HostfileSight look_at_hostfile(const std::string& path, const NodeNaming&);

BinarySight look_at_binary(const std::string& path);

// SLURM's copy of it; nothing for a job without one, or where nobody answers.
std::optional<std::string> ask_batch_script(const site::Discovery&, const AskHelper&);

// The variables and programs of the schedulers.
void look_at_environment(const site::Environment&, JobSight&);

}  // namespace ezpz::doctor
