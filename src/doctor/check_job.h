// The checks of the job and its site. Pure; each says nothing where it has no meaning (a spare on a
// laptop), and unknown where it has one and could not be seen.
#pragma once

#include <vector>

#include "doctor/check.h"
#include "doctor/job_sight.h"

namespace ezpz::doctor {

using Findings = std::vector<Finding>;

// Who runs jobs here, does it answer, and does it know the job of this environment?
Findings check_scheduler(const JobSight&);
Findings check_job(const JobSight&);
// Does the environment name the hosts that the scheduler does?
Findings check_job_hosts(const JobSight&);
Findings check_hostfile(const JobSight&);
// What the scheduler says of the hosts: those that run, and the spares.
Findings check_nodes(const JobSight&);
Findings check_spares(const JobSight&);
// Does the job outlive a lost node, how long does it last, and who hears of its end?
Findings check_no_kill(const JobSight&);
Findings check_time_left(const JobSight&);
Findings check_end_signal(const JobSight&);
Findings check_heterogeneous(const JobSight&);
// Would `ezpz launch` start here, and do the nodes see what it starts?
Findings check_launcher(const JobSight&);
Findings check_launch_plan(const JobSight&);
Findings check_binary(const JobSight&);
// Where the record goes.
Findings check_log_dir(const JobSight&);
Findings check_lustre(const JobSight&);

// All of them, in this order.
Findings check_everything_of_the_job(const JobSight&);

}  // namespace ezpz::doctor
