#include "doctor/check_job.h"

namespace ezpz::doctor {

Findings check_everything_of_the_job(const JobSight& sight) {
  static constexpr Findings (*checks[])(const JobSight&) = {
      check_scheduler, check_job,         check_job_hosts, check_hostfile,   check_nodes,
      check_spares,    check_no_kill,     check_time_left, check_end_signal, check_heterogeneous,
      check_launcher,  check_launch_plan, check_binary,    check_log_dir,    check_lustre};
  Findings all;
  for (const auto check : checks) {
    for (Finding& finding : check(sight)) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace ezpz::doctor
