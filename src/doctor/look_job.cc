#include "doctor/look_job.h"

#include "base/text.h"
#include "doctor/file_system.h"
#include "site/hostfile.h"

namespace ezpz::doctor {

HostfileSight look_at_hostfile(const std::string& path, const NodeNaming& naming) {
  HostfileSight sight;
  sight.path = path;
  Result<site::Hostfile> file = site::read_hostfile(path, naming);
  if (!file) {
    sight.error = file.error();
    return sight;
  }
  sight.hosts = std::move(file->hosts);
  sight.duplicates = std::move(file->duplicates);
  return sight;
}

BinarySight look_at_binary(const std::string& path) {
  BinarySight sight;
  sight.path = path;
  FileSystem system;
  if (!file_system_of(path, &system)) return sight;
  sight.file_system = system.name;
  sight.in_memory = system.in_memory;
  return sight;
}

std::optional<std::string> ask_batch_script(const site::Discovery& job, const AskHelper& ask) {
  if (job.scheduler != site::SchedulerKind::slurm || !job.in_job()) return std::nullopt;
  const HelperResult result =
      ask(site::slurm::batch_script_query(job.job_id), site::discovery_timeout_s);
  if (!result.usable() || trim(result.out).empty()) return std::nullopt;
  return result.out;
}

void look_at_environment(const site::Environment& env, JobSight& sight) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID"}) {
    if (const auto value = site::get(env, name)) sight.job_variables[name] = *value;
  }
  std::vector<std::string> programs;
  if (sight.job.scheduler == site::SchedulerKind::slurm) programs = {"scontrol", "squeue", "srun"};
  if (sight.job.scheduler == site::SchedulerKind::pbs) programs = {"qstat", "pbsnodes"};
  for (const std::string& name : programs) sight.programs[name] = !find_program(name).empty();
}

}  // namespace ezpz::doctor
