#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/hostlist.h"
#include "base/text.h"
#include "site/hostfile.h"
#include "site/pbs.h"
#include "site/scheduler.h"

namespace ezpz::site {
namespace {

// Collects what is found, each with its reason, and what could not be asked.
class Finder {
 public:
  Finder(const Environment& env, const AskHelper& ask, const ProgramExists& exists)
      : env_(env), ask_(ask), exists_(exists) {}

  Discovery found;

  void detect_scheduler() {
    struct Sign {
      SchedulerKind kind;
      std::vector<std::string> variables;
      std::vector<std::string> programs;
    };
    // SLURM first: on a SLURM site PBS_JOBID can be set as well (its PBS look-alikes do that), the
    // other way round it is not.
    static const Sign signs[] = {
        {SchedulerKind::slurm, {"SLURM_JOB_ID", "SLURM_JOBID"}, {"scontrol", "squeue"}},
        {SchedulerKind::pbs, {"PBS_JOBID"}, {"qstat", "pbsnodes"}},
    };
    for (const Sign& sign : signs) {
      for (const std::string& name : sign.variables) {
        const auto value = get(env_, name);
        if (!value) continue;
        found.scheduler = sign.kind;
        found.job_id = *value;
        because("scheduler", name + " is set");
        because("job_id", name);
        return;
      }
    }
    for (const Sign& sign : signs) {
      if (!std::all_of(sign.programs.begin(), sign.programs.end(), exists_)) continue;
      found.scheduler = sign.kind;
      because("scheduler",
              join(sign.programs, " and ") + " are in PATH; no job in the environment");
      return;
    }
    because("scheduler", "no job in the environment and no scheduler's programs in PATH");
  }

  void read_slurm_environment() {
    const bool in_job = found.in_job();
    for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
      const auto list = get(env_, name);
      if (!in_job || !list || !found.hosts.empty()) continue;
      Result<std::vector<std::string>> hosts = expand_hostlist(*list);
      if (!hosts.ok()) {
        found.trouble.push_back(std::string(name) + ": " + hosts.error().one_line());
        continue;
      }
      found.hosts = *std::move(hosts);
      found.environment_hosts = found.hosts;
      because("hosts", name);
    }
    const auto end = get(env_, "SLURM_JOB_END_TIME");
    if (const auto seconds = end ? parse_int(*end) : std::nullopt; seconds && *seconds > 0) {
      found.end_time_s = static_cast<double>(*seconds);
      because("end_time_s", "SLURM_JOB_END_TIME");
    }
    for (const char* name : {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"}) {
      const auto size = get(env_, name);
      if (const auto count = size ? parse_int(*size) : std::nullopt; count && *count > 1) {
        found.heterogeneous = true;
        because("heterogeneous", std::string(name) + "=" + *size);
      }
    }
    if (found.job_id.find('+') != std::string::npos) {
      found.heterogeneous = true;
      because("heterogeneous", "the job id holds a '+'");
    }
    if (const auto name = get(env_, "SLURM_CLUSTER_NAME")) {
      found.cluster = *name;
      because("cluster", "SLURM_CLUSTER_NAME");
    }
    read_slurm_sizes();
  }

  void read_slurm_sizes() {
    const auto cpus = get(env_, "SLURM_JOB_CPUS_PER_NODE");
    const auto counts = cpus ? slurm::expand_counts(*cpus) : std::nullopt;
    if (counts && !counts->empty()) {
      found.cpus_per_node = *std::min_element(counts->begin(), counts->end());
      because("cpus_per_node", "SLURM_JOB_CPUS_PER_NODE=" + *cpus);
    }
    const auto per_task = get(env_, "SLURM_CPUS_PER_TASK");
    if (const auto count = per_task ? parse_int(*per_task) : std::nullopt;
        count && *count > 0 && *count <= 1'000'000) {
      found.cpus_per_task = static_cast<int>(*count);
      because("cpus_per_task", "SLURM_CPUS_PER_TASK");
    }
    found.gpus_per_node = slurm::gpus_on_node(env_);
    if (found.gpus_per_node > 0) because("gpus_per_node", "the job's SLURM_*GPUS* variables");
    for (const char* name : {"SBATCH_NO_KILL", "SALLOC_NO_KILL"}) {
      if (env_.count(name) == 0) continue;
      found.no_kill = true;
      because("no_kill", std::string(name) + " is set");
    }
  }

  void read_pbs_environment() {
    name_pbs_server("the server in PBS_JOBID");
    const auto path = get(env_, "PBS_NODEFILE");
    if (!path) return;
    found.node_file = *path;
    because("node_file", "PBS_NODEFILE");
    // It names a host once for every process the job asked for there.
    const Result<Hostfile> file = read_hostfile(*path, NodeNaming{});
    if (!file.ok()) {
      found.trouble.push_back(file.error().one_line());
      return;
    }
    found.hosts = spellings(file->hosts);
    found.environment_hosts = found.hosts;
    because("hosts", "PBS_NODEFILE");
  }

  void ask_slurm(Depth depth, const std::string& hostname) {
    if (depth == Depth::everything) ask_my_jobs(hostname);
    const bool lacking = found.in_job() && found.hosts.empty();
    if (found.in_job() && (lacking || depth != Depth::environment)) ask_job(found.job_id);
    if (depth != Depth::everything) return;
    if (found.in_job() && !found.no_kill) {
      if (const auto script = answer(slurm::batch_script_query(found.job_id))) {
        found.no_kill = slurm::read_no_kill(*script);
        if (found.no_kill) because("no_kill", "the job's batch script");
      }
    }
    if (found.cluster.empty()) {
      if (const auto config = answer(slurm::cluster_query())) {
        found.cluster = slurm::read_cluster(*config).value_or("");
        if (!found.cluster.empty()) because("cluster", "scontrol show config");
      }
    }
  }

  void ask_pbs(Depth depth, const std::string& hostname) {
    if (depth == Depth::everything) ask_my_jobs(hostname);
    const bool lacking = found.in_job() && found.hosts.empty();
    if (found.in_job() && (lacking || depth != Depth::environment)) ask_job(found.job_id);
    name_pbs_server("the server in the job's id");
  }

  void name_pbs_server(const std::string& why) {
    std::string server = pbs::parse_job_id(found.job_id).server;
    if (server.empty() || !found.cluster.empty()) return;
    found.cluster = std::move(server);
    because("cluster", why);
  }

  // What the job's own list of hosts may not show: with PBS a dead node stays in it.
  void ask_nodes(Depth depth) {
    const Scheduler& row = scheduler(found.scheduler);
    if (depth != Depth::everything || !found.in_job() || found.hosts.empty()) return;
    const auto printed = answer(row.nodes_query(found.hosts));
    if (!printed) return;
    std::map<std::string, std::string> states;  // by the name before the first dot
    for (const auto& [host, state] : row.read_nodes(*printed)) states.emplace(label(host), state);
    size_t known = 0;
    for (const std::string& host : found.hosts) {
      const auto state = states.find(label(host));
      if (state == states.end()) continue;
      ++known;
      if (is_usable(state->second) && !is_draining(state->second)) continue;
      found.unfit_hosts[host] = state->second;
    }
    found.states_known = known;
    const std::string program = row.nodes_query({})[0];
    if (known < found.hosts.size()) {
      found.trouble.push_back(program + " tells the state of " + std::to_string(known) + " of " +
                              std::to_string(found.hosts.size()) + " hosts");
    }
    if (known > 0) because("unfit_hosts", program);
  }

  void because(const std::string& field, const std::string& why) { found.why[field] = why; }

  void find_user() {
    for (const char* name : {"USER", "LOGNAME"}) {
      if (const auto user = get(env_, name)) {
        found.user = *user;
        because("user", name);
        return;
      }
    }
    found.user = std::to_string(getuid());
    because("user", "the process's user number");
  }

 private:
  static std::string label(const std::string& host) {
    return lower(host.substr(0, host.find('.')));
  }

  // SLURM: "slurm_load_jobs error: Invalid job id specified"; PBS: "qstat: Unknown Job Id 9.vm".
  static bool says_no_such_job(const std::string& error_text) {
    const std::string text = lower(error_text);
    return text.find("invalid job id specified") != std::string::npos ||
           text.find("unknown job id") != std::string::npos;
  }

  std::optional<std::string> answer(const Argv& argv) {
    no_such_job_ = false;
    if (silent_) return std::nullopt;
    HelperResult result = ask_(argv, discovery_timeout_s);
    if (result.usable()) return std::move(result.out);
    silent_ = result.timed_out || pbs::is_passing_trouble(result.err);
    no_such_job_ = !result.timed_out && says_no_such_job(result.err);
    found.trouble.push_back(result.trouble.empty() ? shell_join(argv) + " failed" : result.trouble);
    return std::nullopt;
  }

  void ask_my_jobs(const std::string& hostname) {
    const Scheduler& row = scheduler(found.scheduler);
    const Argv query = row.my_jobs_query(found.user);
    const auto listed = answer(query);
    if (!listed) return;
    found.running_jobs = row.read_my_jobs(*listed);
    because("running_jobs", query[0] + " -u " + found.user);
    if (found.in_job() || hostname.empty()) return;
    // Outside a job's environment (a shell through ssh, say), but perhaps on one of its nodes.
    constexpr size_t most_asked = 8;
    const std::string here = label(hostname);
    const JobSource& source = row.job_sources[0];
    for (size_t i = 0; i < std::min(found.running_jobs.size(), most_asked); ++i) {
      const auto printed = answer(source.query(found.running_jobs[i]));
      const auto job = printed ? source.read(*printed) : Result<Job>(Error{});
      if (!job.ok()) continue;
      const bool ours = std::any_of(job->hosts.begin(), job->hosts.end(),
                                    [&](const std::string& host) { return label(host) == here; });
      if (!ours) continue;
      found.job_id = job->id;
      because("job_id",
              "this host is one of the job's (" + query[0] + ", " + std::string(source.name) + ")");
      return;
    }
  }

  void ask_job(const std::string& id) {
    Result<Job> job = Error{"nobody answered", id, ""};
    std::string source;
    bool no_such_job = false;
    for (const JobSource& each : scheduler(found.scheduler).job_sources) {
      const auto printed = answer(each.query(id));
      no_such_job = no_such_job || no_such_job_;
      if (!printed) continue;
      job = each.read(*printed);
      source = each.name;
      if (job.ok()) break;
      found.trouble.push_back(job.error().one_line());
    }
    if (job.ok()) {
      take(*job, source);
    } else {
      found.job_is_unknown = no_such_job;
    }
  }

  void take(const Job& job, const std::string& source) {
    found.job_state = job.state;
    found.job_phase = job.phase;
    found.scheduler_hosts = job.hosts;
    because("job_state", source);
    if (job.heterogeneous) {
      found.heterogeneous = true;
      because("heterogeneous", "scontrol shows HetJobId");
    }
    const bool pbs = found.scheduler == SchedulerKind::pbs;
    if (job.end_time_s) {
      found.end_time_s = job.end_time_s;
      because("end_time_s",
              pbs ? source + ": walltime from the start, read in this host's time zone" : source);
    } else if (pbs && job.phase == JobPhase::running) {
      because("end_time_s", source + " shows no start and walltime that fit this host's clock");
    }
    if (job.no_kill && !found.no_kill) {
      found.no_kill = job.no_kill;
      because("no_kill", source + (*job.no_kill ? ": tolerate_node_failures = all"
                                                : ": no tolerate_node_failures = all"));
    }
    if (job.hosts.empty()) return;
    // PBS's list never shrinks, and the node file spells the hosts as launchers know them.
    if (pbs && !found.hosts.empty()) return;
    const bool shrunk = !found.hosts.empty() && found.hosts != job.hosts;
    because("hosts",
            shrunk ? source + "; the environment names others, as it does after a node was lost"
                   : source);
    found.hosts = job.hosts;
  }

  const Environment& env_;
  const AskHelper& ask_;
  const ProgramExists& exists_;
  bool silent_ = false;       // a question was not answered in time
  bool no_such_job_ = false;  // the last question's answer
};

}  // namespace

std::optional<double> Discovery::time_left_s(double now_wall_s) const {
  if (!end_time_s) return std::nullopt;
  return std::max(0.0, *end_time_s - now_wall_s);
}

Discovery discover(const Environment& env, const AskHelper& ask, const ProgramExists& exists,
                   Depth depth, const std::string& hostname) {
  Finder finder(env, ask, exists);
  finder.find_user();
  finder.detect_scheduler();
  switch (finder.found.scheduler) {
    case SchedulerKind::slurm:
      finder.read_slurm_environment();
      finder.ask_slurm(depth, hostname);
      break;
    case SchedulerKind::pbs:
      finder.read_pbs_environment();
      finder.ask_pbs(depth, hostname);
      break;
    case SchedulerKind::none:
      return std::move(finder.found);
  }
  finder.ask_nodes(depth);
  return std::move(finder.found);
}

std::string own_hostname() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "";
  return name;
}

std::string own_fqdn(const std::string& hostname, const AskHelper& ask, std::string* trouble) {
  if (hostname.empty() || hostname.find('.') != std::string::npos) return hostname;
  const Argv argv = {"getent", "hosts", hostname};
  const HelperResult result = ask(argv, name_lookup_timeout_s);
  if (!result.usable()) {
    if (trouble != nullptr) {
      *trouble = result.trouble.empty() ? shell_join(argv) + " failed" : result.trouble;
    }
    return "";
  }
  // "10.1.2.3  nid001304-hsn0.site.gov nid001304.site.gov nid001304": the one that continues the
  // host name, before any other.
  std::string other;
  for (const std::string& line : split_lines(result.out)) {
    const std::vector<std::string> words = split_words(line);
    for (size_t i = 1; i < words.size(); ++i) {
      const size_t dot = words[i].find('.');
      if (dot == std::string::npos || lower(words[i]).rfind("localhost", 0) == 0) continue;
      if (lower(words[i].substr(0, dot)) == lower(hostname)) return words[i];
      if (other.empty()) other = words[i];
    }
  }
  return other;
}

}  // namespace ezpz::site
