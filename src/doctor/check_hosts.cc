// The hosts: as a file names them, as the scheduler sees them, those that run and the spares.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/check_job.h"
#include "doctor/text_of_hosts.h"
#include "site/hostfile.h"

namespace ezpz::doctor {
namespace {

using site::SchedulerKind;

// "nid[3-4] (DOWN), nid9 (DRAIN)", at most a few.
std::string with_states(const std::vector<std::pair<std::string, std::string>>& hosts) {
  std::map<std::string, std::vector<std::string>> by_state;
  for (const auto& [host, state] : hosts) by_state[state].push_back(host);
  std::vector<std::string> parts;
  parts.reserve(by_state.size());
  for (const auto& [state, named] : by_state) {
    parts.push_back(text_of_hosts(named) + " (" + printable(state, 60) + ")");
  }
  return join(parts, ", ");
}

struct Unfit {
  std::vector<std::pair<std::string, std::string>> down;      // nothing can be started there
  std::vector<std::pair<std::string, std::string>> draining;  // nothing new is to be
};

struct UnfitHosts {
  Unfit active;
  Unfit spare;
};

UnfitHosts sort_out(const JobSight& sight) {
  const NodeNaming& naming = sight.machine.naming;
  std::set<std::string> spares;
  std::set<std::string> used;
  const LaunchSight& launch = sight.launch;
  for (size_t i = 0; i < launch.pool.size(); ++i) {
    used.insert(launch.pool[i].key);
    if (launch.active && i >= *launch.active) spares.insert(launch.pool[i].key);
  }
  UnfitHosts hosts;
  for (const auto& [host, state] : sight.job.unfit_hosts) {
    const std::string key = node_key(host, naming);
    if (!used.empty() && used.count(key) == 0) continue;  // left out, by a hostfile perhaps
    Unfit& unfit = spares.count(key) != 0 ? hosts.spare : hosts.active;
    (site::is_usable(state) ? unfit.draining : unfit.down).emplace_back(host, state);
  }
  return hosts;
}

// A PBS server that calls the very host down that asks has been restarted and knows nothing yet.
bool calls_this_host_down(const JobSight& sight) {
  const NodeNaming& naming = sight.machine.naming;
  const std::string here = node_key(sight.hostname, naming);
  return std::any_of(
      sight.job.unfit_hosts.begin(), sight.job.unfit_hosts.end(), [&](const auto& entry) {
        return node_key(entry.first, naming) == here && !site::is_usable(entry.second);
      });
}

}  // namespace

Findings check_hostfile(const JobSight& sight) {
  constexpr const char* kName = "hostfile";
  if (!sight.hostfile) {
    if (sight.job.scheduler != SchedulerKind::pbs || sight.job.node_file.empty()) return {};
    if (!sight.job.environment_hosts.empty()) return {};
    return {{kName, Health::warning,
             "the job's node file cannot be read: " + printable(sight.job.node_file, 200),
             "ezpz launch asks PBS for the hosts; other programs that read PBS_NODEFILE will fail",
             ""}};
  }
  const HostfileSight& file = *sight.hostfile;
  if (file.error) {
    return {{kName, Health::error, file.error->one_line(),
             "give a readable file with one host a line, or leave --hostfile out in a job", ""}};
  }
  const std::vector<Node> allocation = make_nodes(sight.job.hosts, sight.machine.naming);
  std::vector<std::string> foreign;
  for (const Node& host : file.hosts) {
    if (std::find(allocation.begin(), allocation.end(), host) == allocation.end()) {
      foreign.push_back(host.spelled);
    }
  }
  const std::string counted =
      count_of(file.hosts.size(), "host") + " in " + printable(file.path, 200);
  if (sight.job.in_job() && !allocation.empty() && !foreign.empty()) {
    return {{kName, Health::error,
             "not in this job's allocation: " + text_of_hosts(foreign) + " of " +
                 printable(file.path, 200),
             "take them out of the file; the job has " + text_of_hosts(allocation), ""}};
  }
  if (sight.job.in_job() && allocation.empty()) {
    return {{kName, Health::unknown,
             counted + "; whether they are the job's is not known, for its hosts are not",
             "try again when the scheduler answers", ""}};
  }
  if (!file.duplicates.empty()) {
    return {{kName, Health::warning,
             "listed more than once: " + text_of_hosts(file.duplicates) + " in " +
                 printable(file.path, 200),
             "ezpz launch takes each once; say ranks a host with --ppn, not by repeating it", ""}};
  }
  return {{kName, Health::ok, counted + (sight.job.in_job() ? ", all of this job" : ""), "", ""}};
}

Findings check_nodes(const JobSight& sight) {
  constexpr const char* kName = "nodes";
  const site::Discovery& job = sight.job;
  if (!job.in_job() || job.job_is_unknown || job.hosts.empty()) return {};
  const std::string ask =
      job.scheduler == SchedulerKind::pbs ? "pbsnodes -a" : "scontrol show node";
  if (job.states_known == 0) {
    return {{kName, Health::unknown, "the scheduler did not tell the state of any host",
             "ask it by hand: " + ask, ""}};
  }
  if (job.scheduler == SchedulerKind::pbs && calls_this_host_down(sight)) {
    return {{kName, Health::unknown,
             "pbsnodes calls even this host down: the server has been restarted and knows nothing "
             "yet",
             "ask again in a minute: pbsnodes -a", ""}};
  }
  const UnfitHosts unfit = sort_out(sight);
  if (!unfit.active.down.empty()) {
    return {{kName, Health::error,
             "ranks would be started on hosts that the scheduler calls down: " +
                 with_states(unfit.active.down),
             "leave them out (ezpz launch --exclude " + text_of_hosts([&] {
               std::vector<std::string> names;
               for (const auto& [host, state] : unfit.active.down) names.push_back(host);
               return names;
             }()) +
                 ") or start a new job",
             ""}};
  }
  if (job.states_known < job.hosts.size()) {
    return {{kName, Health::unknown,
             fmt::format("the scheduler told the state of {} of {} hosts only", job.states_known,
                         job.hosts.size()),
             "ask it by hand: " + ask, ""}};
  }
  if (!unfit.active.draining.empty()) {
    return {{kName, Health::warning,
             "to be taken out of service when the job ends: " + with_states(unfit.active.draining),
             "they run on, but somebody found something there: ask why (" + ask +
                 "), and leave them out if you have spares",
             ""}};
  }
  return {{kName, Health::ok,
           fmt::format(
               "the scheduler finds nothing wrong with {}",
               count_of(job.hosts.size() - unfit.spare.down.size() - unfit.spare.draining.size(),
                        "host")),
           "", ""}};
}

Findings check_spares(const JobSight& sight) {
  constexpr const char* kName = "spares";
  const LaunchSight& launch = sight.launch;
  const bool has_hosts = sight.job.in_job() || sight.hostfile.has_value();
  if (!has_hosts || launch.pool.empty() || launch.launcher == "local") return {};
  if (!launch.active) {
    return {{kName, Health::unknown,
             "how many of the " + count_of(launch.pool.size(), "host") +
                 " are to be active was not said",
             "say it as to ezpz launch: --nhosts N, or -n with --ppn, or --spare-nodes N", ""}};
  }
  const size_t active = *launch.active;
  if (launch.pool.size() <= active) {
    return {
        {kName, Health::warning,
         "no spare: all " + count_of(active, "host") +
             " are active, and a lost one cannot be replaced",
         fmt::format("ask the scheduler for more hosts than --nhosts, or use fewer: --nhosts {}",
                     active > 1 ? active - 1 : active),
         ""}};
  }
  const size_t spares = launch.pool.size() - active;
  const UnfitHosts unfit = sort_out(sight);
  std::vector<std::pair<std::string, std::string>> bad = unfit.spare.down;
  bad.insert(bad.end(), unfit.spare.draining.begin(), unfit.spare.draining.end());
  if (!bad.empty()) {
    return {{kName, Health::warning,
             fmt::format("{} of {} cannot be used: {}", bad.size(), count_of(spares, "spare"),
                         with_states(bad)),
             bad.size() == spares ? "there is no other spare: a lost node cannot be replaced"
                                  : "nothing to do: ezpz launch skips them; count on the others",
             ""}};
  }
  if (sight.job.in_job() && sight.job.states_known < sight.job.hosts.size()) {
    return {{kName, Health::unknown,
             count_of(spares, "spare") + ", but whether they are up was not told by the scheduler",
             "ezpz launch asks again before it uses one", ""}};
  }
  const std::vector<Node> named(launch.pool.begin() + static_cast<std::ptrdiff_t>(active),
                                launch.pool.end());
  return {{kName, Health::ok,
           count_of(spares, "spare") + " beside " + count_of(active, "active host") + ": " +
               text_of_hosts(named),
           "", ""}};
}

}  // namespace ezpz::doctor
