#include "app/launch_setup.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/process.h"
#include "base/text.h"
#include "launch/inherit.h"
#include "site/hostfile.h"

namespace ezpz::app {
namespace {

Result<std::vector<Node>> pool_from_hostfile(const LaunchOptions& options, const SiteView& site,
                                             std::vector<std::string>& notes) {
  const NodeNaming& naming = site.machine.machine.naming;
  const Result<site::Hostfile> file = site::read_hostfile(options.hostfile, naming);
  if (!file) return file.error();
  if (!file->duplicates.empty()) {
    notes.push_back("hostfile: listed more than once, used once: " + join(file->duplicates, ", "));
  }
  if (options.launcher == "local") return file->hosts;
  return site::within_allocation(file->hosts, make_nodes(site.job.hosts, naming), options.hostfile);
}

// Without a scheduler and a hostfile, nodes are simulated on this machine: as many as asked for,
// and with --auto-retry as many spares again when their number is not given.
std::vector<Node> simulated_pool(const LaunchOptions& options, const SiteView& site) {
  const long active = options.hosts.value_or(1);
  long spares = 0;
  if (options.auto_retry) spares = parse_int(options.spare_nodes).value_or(active);
  if (active + spares == 1) return {make_node(site.hostname, site.machine.machine.naming)};
  std::vector<Node> pool;
  for (long i = 1; i <= active + spares; ++i) {
    pool.push_back(make_node("sim" + std::to_string(i), {}));
  }
  return pool;
}

Result<std::vector<Node>> choose_pool(const LaunchOptions& options, const SiteView& site,
                                      std::string_view launcher, std::vector<std::string>& notes) {
  if (!options.hostfile.empty()) return pool_from_hostfile(options, site, notes);
  if (launcher == "local") return simulated_pool(options, site);
  if (!site.job.hosts.empty()) return make_nodes(site.job.hosts, site.machine.machine.naming);
  return Error{"the job's hosts are unknown", site.job.job_id,
               site.job.in_job() ? "the scheduler did not answer; give --hostfile"
                                 : "start it inside a job, or give --hostfile"};
}

Status leave_out(const std::vector<std::string>& exclude, const NodeNaming& naming,
                 std::vector<Node>& pool, std::vector<std::string>& notes) {
  for (const std::string& spelled : exclude) {
    const Node node = make_node(spelled, naming);
    const auto found = std::find(pool.begin(), pool.end(), node);
    if (found == pool.end()) {
      notes.push_back("--exclude: " + spelled + " is not among the hosts anyway");
    } else {
      pool.erase(found);
    }
  }
  if (pool.empty()) return Error{"no host is left after --exclude", "", ""};
  return success();
}

// With --auto-retry the split must be said: taking every host as active would leave no spare, and
// taking fewer would be a guess at how large the job should be.
Status require_active_size(const LaunchOptions& options, size_t pool) {
  const bool said =
      options.hosts || (options.ranks && options.ranks_per_node) || options.spare_nodes != "auto";
  if (said) return success();
  return Error{fmt::format("--auto-retry must know how many of the {} hosts are active", pool), "",
               "give --nhosts N, or -n with --ppn, or --spare-nodes N"};
}

Result<launch::Counts> count(const LaunchOptions& options, size_t pool, int gpus_per_node) {
  launch::CountRequest request;
  request.ranks = options.ranks;
  request.ranks_per_node = options.ranks_per_node;
  request.hosts = options.hosts;
  request.available_hosts = static_cast<int>(pool);
  request.gpus_per_node = gpus_per_node;
  const bool open_ended = !options.hosts && !(options.ranks && options.ranks_per_node);
  if (options.auto_retry && open_ended && options.spare_nodes != "auto") {
    const long spares = *parse_int(options.spare_nodes);
    const long active = static_cast<long>(pool) - spares;
    if (active < 1) {
      return Error{fmt::format("{} spares leave no active host of {}", spares, pool),
                   "--spare-nodes", ""};
    }
    request.hosts = active;
  }
  return launch::resolve_counts(request);
}

// What depends on which mpiexec this is and where it stands.
Status find_launcher_program(const LaunchOptions& options, const site::Machine& machine,
                             const launch::MpiSearch& search, LaunchSetup& setup) {
  if (setup.launcher->name == "ssh") {
    setup.request.program = search.find("ssh");
    if (!setup.request.program.empty() || options.dry_run) return success();
    return Error{"there is no ssh in PATH", "--launcher ssh", "install OpenSSH's client"};
  }
  if (setup.launcher->programs.empty()) return success();
  launch::Request& request = setup.request;
  const Result<launch::MpiProgram> program = launch::find_mpi(*setup.launcher, search);
  if (program) {
    request.program = program->path;
    request.intel_mpi = program->kind == launch::MpiKind::intel;
  } else if (options.dry_run) {
    setup.notes.push_back(program.error().one_line());  // a plan may be made elsewhere
  } else {
    return program.error();
  }
  if (setup.launcher->name != "pals") return success();
  request.label = machine.label_output;
  const auto bound = machine.cpu_bind.find(request.ranks_per_node);
  if (request.cpu_bind.empty() && bound != machine.cpu_bind.end()) request.cpu_bind = bound->second;
  return success();
}

}  // namespace

Result<LaunchSetup> set_up_launch(const LaunchOptions& options, const SiteView& site,
                                  const launch::MpiSearch& search) {
  LaunchSetup setup;
  const site::Machine& machine = site.machine.machine;
  launch::LauncherWish wish;
  wish.asked = options.launcher;
  wish.job = site.job.in_job() ? site.job.scheduler : site::SchedulerKind::none;
  wish.suggestion = machine.launcher;
  wish.has_hostfile = !options.hostfile.empty();
  wish.has_ssh = !search.find("ssh").empty();
  wish.installed = [&search] { return launch::installed_mpi(search); };
  const Result<const launch::Launcher*> launcher = launch::choose_launcher(wish);
  if (!launcher) return launcher.error();
  setup.launcher = *launcher;
  const bool local = setup.launcher->name == "local";
  setup.job_id = site.job.in_job() ? site.job.job_id : "local-" + std::to_string(getpid());
  if (!site.job.in_job() && options.launcher != "local") {
    // Simulating nodes must be asked for: on a login node somebody has only forgotten his salloc.
    const bool needs_job = setup.launcher->name == "srun";
    if (options.auto_retry && (needs_job || options.hostfile.empty())) {
      return Error{"--auto-retry has no allocation to find spares in", "",
                   "start it inside a job, or give --hostfile, or --launcher local to simulate"};
    }
    if (local && !options.hostfile.empty()) {
      setup.notes.push_back("no job here: the hosts of " + options.hostfile +
                            " are simulated on this machine (--launcher local says it is meant)");
    }
  }

  Result<std::vector<Node>> pool = choose_pool(options, site, setup.launcher->name, setup.notes);
  if (!pool) return pool.error();
  setup.pool = std::move(*pool);
  if (Status left = leave_out(options.exclude, machine.naming, setup.pool, setup.notes); !left) {
    return left.error();
  }
  if (options.auto_retry) {
    if (Status said = require_active_size(options, setup.pool.size()); !said) return said.error();
  }

  // GPUs: as the job has them. On a machine without a scheduler's word, its table, if it is known.
  int gpus = static_cast<int>(options.gpus_per_node.value_or(site.job.gpus_per_node));
  const int ranks_by_default = options.gpus_per_node || gpus > 0 ? gpus
                               : local                           ? 0
                                                                 : machine.gpus_per_node;
  const Result<launch::Counts> counts = count(options, setup.pool.size(), ranks_by_default);
  if (!counts) return counts.error();
  setup.active = static_cast<size_t>(counts->hosts);
  if (options.auto_retry && options.spare_nodes != "auto") {
    const auto spares = static_cast<size_t>(*parse_int(options.spare_nodes));
    if (setup.active + spares > setup.pool.size()) {
      return Error{fmt::format("{} active and {} spare hosts are more than the {} there are",
                               setup.active, spares, setup.pool.size()),
                   "--spare-nodes", ""};
    }
    setup.pool.resize(setup.active + spares);
  }
  if (options.auto_retry && setup.pool.size() == setup.active) {
    setup.notes.push_back("no spare host: a lost node cannot be replaced");
  }

  launch::Request& request = setup.request;
  request.command = options.command;
  if (!options.cpu_bind.empty() && local) {
    return Error{"the local launcher does not bind CPUs", "--cpu-bind", "leave it out"};
  }
  request.launcher_flags = options.launcher_flags;
  request.allocation = make_nodes(site.job.hosts, machine.naming);
  request.ranks = counts->ranks;
  request.ranks_per_node = counts->ranks_per_node;
  request.gpus_per_node = gpus;
  request.cpus_per_rank =
      launch::cpus_per_rank(site.job.cpus_per_node, counts->ranks_per_node, site.job.cpus_per_task);
  request.rank_env = !options.no_rank_env;
  request.heterogeneous = site.job.heterogeneous;
  request.self_path = self_path();
  request.user_env = options.env;
  setup.network = watch_network(options, machine, site.env, setup.active);
  request.user_env.insert(setup.network.env.begin(), setup.network.env.end());
  request.inherited = launch::inherited_names(site.env);
  request.inherited.insert(request.inherited.end(), options.inherit.begin(), options.inherit.end());
  request.cpu_bind = options.cpu_bind;
  request.as_root = geteuid() == 0;
  request.job_id = setup.job_id;

  if (Status found = find_launcher_program(options, machine, search, setup); !found) {
    return found.error();
  }

  // What a plan would refuse is refused now, before anything is written or started.
  launch::Request trial = request;
  trial.hosts.assign(setup.pool.begin(),
                     setup.pool.begin() + static_cast<std::ptrdiff_t>(setup.active));
  trial.attempt_id = setup.job_id;
  const Result<launch::Plan> plan = setup.launcher->plan(trial);
  if (!plan) return plan.error();
  return setup;
}

}  // namespace ezpz::app
