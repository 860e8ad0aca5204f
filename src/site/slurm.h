// What SLURM is asked and how its answers read. Pure: argv out, text in. The caller runs them, with
// a time limit, and lives with a failure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "site/environment.h"
#include "site/job.h"

namespace ezpz::site::slurm {

// scontrol's view of a job: the truth, also after a node was lost (its hosts then shrink).
Argv job_query(const std::string& job_id);      // scontrol show job -o ID
Result<Job> read_job(std::string_view output);  // the first job printed

// SLURM 22.05 shows nowhere whether a job was submitted with --no-kill. Its batch script may say
// so; nothing when the script does not (the command line may have).
Argv batch_script_query(const std::string& job_id);
std::optional<bool> read_no_kill(std::string_view batch_script);

// Whoever answers about a job, best first: scontrol knows most, squeue and the accounting (where a
// site keeps one) still answer when it fails. Their answers lack what they do not print.
std::span<const JobSource> job_sources();

Argv my_jobs_query(const std::string& user);                     // the user's running jobs
std::vector<std::string> read_my_jobs(std::string_view output);  // ids, ascending as printed

// NodeName -> state as printed: "IDLE", "ALLOCATED", "DOWN+NOT_RESPONDING", "IDLE+DRAIN". Hosts
// SLURM does not know are missing from the map; scontrol then exits 1 and still prints the others.
Argv nodes_query(const std::vector<std::string>& hosts);  // scontrol show node -o LIST
std::map<std::string, std::string> read_nodes(std::string_view output);

Argv steps_query(const std::string& job_id);
std::vector<Step> read_steps(std::string_view output);

Argv cluster_query();  // scontrol show config
std::optional<std::string> read_cluster(std::string_view output);

// "8(x3),4" -> {8,8,8,4}; nothing when malformed or beyond max_hosts entries. The grammar of
// SLURM_JOB_CPUS_PER_NODE and SLURM_TASKS_PER_NODE.
std::optional<std::vector<int>> expand_counts(std::string_view text);

// "2026-11-29T16:03:07" in the local time zone; nothing for "Unknown", "N/A", "None".
std::optional<double> parse_time(std::string_view text);

// GPUs on this node as the job's environment tells; 0 when it does not.
int gpus_on_node(const Environment&);

}  // namespace ezpz::site::slurm
