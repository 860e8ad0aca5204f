// What PBS (PBS Pro, OpenPBS) is asked and how its answers read. Pure: argv out, text in. The
// caller runs them, with a time limit, and lives with a failure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "site/job.h"

namespace ezpz::site::pbs {

// "123.aurora-pbs-0001.host", "123[4].srv": the part before the server, and the server.
struct JobId {
  std::string sequence;  // "123", "123[4]"
  std::string server;    // empty: not given
};
JobId parse_job_id(std::string_view text);

// `qstat -f -F json`. Its hosts are those the job was given: they never shrink, whatever happened
// to them since. The user's own text (Variable_List) can make it invalid JSON on some versions, and
// cannot forge what stands before it: of a name that comes twice the first counts.
Result<Job> read_job_json(std::string_view output);
// `qstat -f -w`: the same as text.
Result<Job> read_job_text(std::string_view output);
// Whoever answers about a job, best first. The last one also knows jobs that are over.
std::span<const JobSource> job_sources();

// The hosts of `h1/0*2+h1/1*2+h2/0*2` (exec_host), each once, in order.
std::vector<std::string> hosts_of_exec_host(std::string_view text);
// The hosts of `(h1:ncpus=2:mem=1gb+h1[1]:ncpus=2)+(h2:ncpus=2)` (exec_vnode): a vnode's part in
// brackets is not its host's name.
std::vector<std::string> hosts_of_exec_vnode(std::string_view text);

// "36:00:00", "00:01:00", "1:30", "90": seconds.
std::optional<double> parse_walltime(std::string_view text);
// "Sun Nov 29 15:22:35 2026": the server's local time without its zone, read in this host's.
std::optional<double> parse_ctime(std::string_view text);

// Q, R, E, F, ...: never to be read as SLURM's.
JobPhase phase_of(std::string_view job_state);

// The user's running jobs: `qstat -u USER`, a table whose ids may be cut, so that only the part
// before the server is taken.
Argv my_jobs_query(const std::string& user);
std::vector<std::string> read_my_jobs(std::string_view output);

// Every node of the cluster: a job's hosts need not be spelled as pbsnodes lists them. A host of
// several vnodes has one state, all their words ("job-busy,down"), under each of its names. An
// answer that breaks off gives the nodes before the break.
Argv nodes_query(const std::vector<std::string>& hosts);
std::map<std::string, std::string> read_nodes(std::string_view output);

// The server or the network had a moment: the same question may be answered a second later.
bool is_passing_trouble(std::string_view error_text);

}  // namespace ezpz::site::pbs
