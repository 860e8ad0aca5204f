#include "doctor/check_peers.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/text_of_hosts.h"

namespace ezpz::doctor {
namespace {

// More than this and logs of two nodes cannot be laid side by side; MUNGE refuses what is 300 s
// old.
constexpr double kSkew_s = 2;

using Hosts = std::vector<std::string>;

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

Hosts hosts_of(const PeerQuestion& question) {
  Hosts hosts;
  for (const auto& [host, answer] : question.answers) hosts.push_back(host);
  return hosts;
}

// The interface of a node that has this address; empty: none has.
std::string interface_of(const NodeFacts& facts, const std::string& address) {
  for (const auto& [name, addresses] : facts.addresses) {
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) return name;
  }
  return "";
}

// Interfaces of the fast network, of which the machine's table knows the ending of names: "-hsn#".
Hosts fast_interfaces(const NodeFacts& facts, const site::Machine& machine) {
  Hosts found;
  for (const auto& [name, addresses] : facts.addresses) {
    for (const std::string& ending : machine.naming.interfaces) {
      const std::string_view pattern = std::string_view(ending).substr(ending[0] == '-' ? 1 : 0);
      if (!pattern.empty() && glob_match(pattern, name)) found.push_back(name);
    }
  }
  return found;
}

// "hsn0" -> "hsn": what NCCL takes as a prefix.
std::string without_number(const std::string& interface) {
  return interface.substr(0, interface.find_last_not_of("0123456789") + 1);
}

PeerFinding names_finding(Health health, std::string why, std::string remedy, Hosts hosts,
                          std::string reference = "") {
  return {{"names", health, std::move(why), std::move(remedy), std::move(reference)},
          std::move(hosts)};
}

// Does this node find the host of rank 0? Nothing when there is no fault.
std::optional<PeerFinding> judge_first_host(const PeerQuestion& question, const std::string& host,
                                            const NodeFacts& facts) {
  const std::string& first = question.first_host;
  if (first.empty() || first == host) return std::nullopt;
  const auto found = facts.names.find(first);
  if (found == facts.names.end()) return std::nullopt;
  const std::string remedy = "compare `getent ahosts " + first + "` there and on " + first +
                             "; tell the site if they differ";
  if (found->second.empty()) {
    return names_finding(Health::error,
                         "cannot resolve " + printable(first, 100) +
                             ", where rank 0 would be: its ranks would not find MASTER_ADDR",
                         remedy, {host});
  }
  const auto answer = question.answers.find(first);
  if (answer == question.answers.end() || answer->second.report.facts.addresses.empty()) {
    return std::nullopt;
  }
  const bool right =
      std::any_of(found->second.begin(), found->second.end(), [&](const std::string& address) {
        return !interface_of(answer->second.report.facts, address).empty();
      });
  if (right) return std::nullopt;
  return names_finding(Health::error,
                       printable(first, 100) + " resolves to " + printable(found->second[0], 60) +
                           ", which is no address of " + printable(first, 100),
                       remedy, {host});
}

// Does its own name lead to the network that ranks should talk over?
PeerFinding judge_own_name(const PeerQuestion& question, const std::string& host,
                           const NodeFacts& facts) {
  const auto found = facts.names.find(facts.hostname);
  if (found == facts.names.end()) {
    return names_finding(Health::unknown, "getent did not answer about its own name",
                         "ask there: getent ahosts $(hostname)", {host});
  }
  const std::string bind =
      "export NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME with the name of the "
      "interface to use";
  if (found->second.empty()) {
    return names_finding(Health::warning, "does not resolve its own name",
                         bind + "; gloo looks its own name up", {host},
                         "https://pytorch.org/docs/stable/distributed.html");
  }
  const std::string& address = found->second[0];
  const Hosts fast = fast_interfaces(facts, question.machine);
  const bool set = !facts.socket_interfaces.empty();
  const bool many = question.answers.size() + question.not_answered.size() > 1;
  if (is_loopback(address)) {
    if (!many || set) {
      return names_finding(Health::ok, "its own name is the loopback's", "", {host});
    }
    return names_finding(Health::warning,
                         "its own name resolves to " + address +
                             ", where no other node reaches it: gloo would tell the others that",
                         bind, {host}, "https://pytorch.org/docs/stable/distributed.html");
  }
  const std::string interface = interface_of(facts, address);
  if (interface.empty() && !facts.addresses.empty()) {
    return names_finding(
        Health::warning,
        "its own name resolves to " + printable(address, 60) + ", which none of its interfaces has",
        "ask there: getent ahosts $(hostname); tell the site", {host});
  }
  const bool is_fast = std::find(fast.begin(), fast.end(), interface) != fast.end();
  if (!fast.empty() && !is_fast && !set) {
    return names_finding(
        Health::warning,
        fmt::format("its own name resolves to {} on {}, though it has {}: sockets (rendezvous, "
                    "gloo, NCCL's bootstrap) take the slow network",
                    printable(address, 60), printable(interface, 20), join(fast, ", ")),
        fmt::format("export NCCL_SOCKET_IFNAME={} GLOO_SOCKET_IFNAME={}", without_number(fast[0]),
                    fast[0]),
        {host});
  }
  return names_finding(Health::ok,
                       is_fast ? "names resolve, to the fast network (" + interface + ")"
                       : set && !fast.empty()
                           ? "names resolve; sockets take " + printable(facts.socket_interfaces[0])
                           : "names resolve, to " + printable(interface, 20),
                       "", {host});
}

}  // namespace

std::vector<PeerFinding> check_answers(const PeerQuestion& question) {
  std::vector<PeerFinding> found;
  const size_t all = question.answers.size() + question.not_answered.size();
  if (!question.answers.empty() && !question.alone) {
    found.push_back({{"node-answers", Health::ok, "answered", "", ""}, hosts_of(question)});
  }
  const std::string remedy =
      question.answers.empty() && all > 1
          ? "the launcher itself may be the trouble: try it by hand with `hostname`"
          : "silence is no proof: ask again, or start something there by hand; if it stays silent "
            "leave it out (--exclude)";
  for (const auto& [host, why] : question.not_answered) {
    found.push_back({{"node-answers", Health::unknown, printable(why, 300), remedy, ""}, {host}});
  }
  return found;
}

ClockOffset clock_offset(const PeerAnswer& answer) {
  // It began to look after we asked, and had answered before we had read it.
  return {answer.report.facts.answered_s - answer.answered_s,
          answer.report.facts.began_s - answer.asked_s};
}

std::vector<PeerFinding> check_clocks(const PeerQuestion& question) {
  if (question.alone) return {};
  std::vector<PeerFinding> found;
  double loosest_s = 0;
  Hosts fine;
  for (const auto& [host, answer] : question.answers) {
    const ClockOffset offset = clock_offset(answer);
    if (answer.report.facts.began_s <= 0 || offset.least_s > offset.most_s) {
      found.push_back(
          {{"clock", Health::unknown, "a clock was set while it was looked at", "ask again", ""},
           {host}});
      continue;
    }
    const bool ahead = offset.least_s > kSkew_s;
    if (ahead || offset.most_s < -kSkew_s) {
      const double least_s = ahead ? offset.least_s : -offset.most_s;
      const double most_s = ahead ? offset.most_s : -offset.least_s;
      found.push_back(
          {{"clock", Health::warning,
            fmt::format("its clock is {} by {:.1f} to {:.1f} s", ahead ? "ahead" : "behind",
                        least_s, most_s),
            "logs and checkpoints of this node carry wrong times; past 300 s MUNGE, and with it "
            "SLURM, refuses it: tell the site",
            "https://github.com/dun/munge/wiki/Man-8-munged"},
           {host}});
      continue;
    }
    fine.push_back(host);
    loosest_s = std::max({loosest_s, -offset.least_s, offset.most_s});
  }
  if (!fine.empty()) {
    // What a round trip cannot tell is not called fine: it is said.
    const bool told = loosest_s <= 30;
    found.push_back(
        {{"clock", told ? Health::ok : Health::unknown,
          fmt::format("no clock is surely wrong; the answers leave {:.1f} s open", loosest_s),
          told ? "" : "the nodes answered too slowly to tell: ask again", ""},
         fine});
  }
  return found;
}

std::vector<PeerFinding> check_names(const PeerQuestion& question) {
  std::vector<PeerFinding> found;
  for (const auto& [host, answer] : question.answers) {
    const NodeFacts& facts = answer.report.facts;
    if (auto fault = judge_first_host(question, host, facts)) {
      found.push_back(std::move(*fault));
      continue;
    }
    found.push_back(judge_own_name(question, host, facts));
  }
  return found;
}

std::vector<PeerFinding> check_alike(const PeerQuestion& question) {
  if (question.answers.size() < 2) return {};
  std::set<std::string> properties;
  for (const auto& [host, answer] : question.answers) {
    for (const auto& [name, value] : answer.report.facts.alike) properties.insert(name);
  }
  std::vector<PeerFinding> found;
  std::set<std::string> odd_hosts;
  for (const std::string& property : properties) {
    std::map<std::string, Hosts> by_value;
    for (const auto& [host, answer] : question.answers) {
      const auto value = answer.report.facts.alike.find(property);
      by_value[value == answer.report.facts.alike.end() ? "none" : value->second].push_back(host);
    }
    if (by_value.size() < 2) continue;
    const auto most = std::max_element(
        by_value.begin(), by_value.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    for (const auto& [value, hosts] : by_value) {
      if (value == most->first) continue;
      odd_hosts.insert(hosts.begin(), hosts.end());
      found.push_back(
          {{"alike", Health::warning,
            fmt::format(
                "{} is {}, on {} it is {}", property, printable(value, 80),
                most->second.size() * 2 > question.answers.size() ? "most others" : "other nodes",
                printable(most->first, 80)),
            "a node that differs from its peers is the first to suspect: leave it out "
            "(--exclude) or tell the site",
            ""},
           hosts});
    }
  }
  Hosts alike;
  for (const auto& [host, answer] : question.answers) {
    if (odd_hosts.count(host) == 0) alike.push_back(host);
  }
  if (!alike.empty()) {
    found.push_back({{"alike", Health::ok,
                      "the same " + join({properties.begin(), properties.end()}, ", "), "", ""},
                     alike});
  }
  return found;
}

std::vector<PeerFinding> check_seen(const PeerQuestion& question) {
  if (question.alone) return {};
  std::vector<PeerFinding> found;
  Hosts seen;
  Hosts blind;
  Hosts here;
  std::map<std::string, Hosts> elsewhere;
  for (const auto& [host, answer] : question.answers) {
    const NodeFacts& facts = answer.report.facts;
    const auto mark = facts.sees.find(question.log_dir_mark);
    if (!question.log_dir_mark.empty() && mark != facts.sees.end()) {
      (mark->second ? seen : blind).push_back(host);
    }
    if (facts.cwd == question.cwd) {
      here.push_back(host);
    } else {
      elsewhere[facts.cwd].push_back(host);
    }
  }
  if (!seen.empty()) found.push_back({{"log-dir-seen", Health::ok, "sees it", "", ""}, seen});
  if (!blind.empty()) {
    found.push_back({{"log-dir-seen", Health::warning,
                      "does not see what is written into the log directory here",
                      "ezpz itself needs it on this host alone, but it is gone with it, and a "
                      "checkpoint beside it is not seen by this node: use a shared file system",
                      ""},
                     blind});
  }
  if (!here.empty()) {
    found.push_back(
        {{"working-dir", Health::ok, "starts in " + printable(question.cwd, 200), "", ""}, here});
  }
  for (const auto& [folder, hosts] : elsewhere) {
    found.push_back({{"working-dir", Health::warning,
                      "does not start in " + printable(question.cwd, 200) + " but in " +
                          printable(folder.empty() ? "nowhere" : folder, 200),
                      "start from a folder that all nodes see: relative paths (train.py) are not "
                      "found there",
                      ""},
                     hosts});
  }
  return found;
}

AttemptName parse_attempt_id(const std::string& id) {
  const size_t attempt = id.rfind('.');
  const size_t salt =
      attempt == std::string::npos || attempt == 0 ? std::string::npos : id.rfind('.', attempt - 1);
  if (salt == std::string::npos) return {};
  return {id.substr(0, salt), id.substr(0, attempt)};
}

std::vector<PeerFinding> check_leftovers(const PeerQuestion& question) {
  std::vector<PeerFinding> found;
  Hosts clean;
  for (const auto& [host, answer] : question.answers) {
    std::vector<int> stale;      // of jobs and attempts that are over
    std::vector<int> undecided;  // of a job that may be running
    std::set<std::string> of;
    std::set<std::string> of_undecided;
    for (const Leftover& leftover : answer.report.facts.leftovers) {
      const std::string job = leftover.attempt_id.empty()
                                  ? leftover.job_id
                                  : parse_attempt_id(leftover.attempt_id).job_id;
      const bool of_this_job = !question.job_id.empty() && job == question.job_id;
      if (of_this_job) {
        // The launcher of an attempt that runs is on the host that ezpz runs on, which is this one.
        if (!leftover.rank || question.running_attempts.count(leftover.attempt_id) != 0) continue;
        stale.push_back(leftover.pid);
        of.insert("attempt " + printable(leftover.attempt_id, 80));
        continue;
      }
      const std::string sequence = job.substr(0, job.find('.'));
      if (question.running_jobs.count(job) != 0 || question.running_jobs.count(sequence) != 0) {
        continue;
      }
      const bool is_local = job.rfind("local-", 0) == 0;
      if (question.running_jobs_known || is_local) {
        stale.push_back(leftover.pid);
        of.insert("job " + printable(job, 80));
      } else {
        undecided.push_back(leftover.pid);
        of_undecided.insert("job " + printable(job, 80));
      }
    }
    std::sort(stale.begin(), stale.end());
    std::sort(undecided.begin(), undecided.end());
    if (!stale.empty()) {
      found.push_back(
          {{"leftovers", Health::warning,
            fmt::format("processes of yours that nothing runs any more: pid {} ({})",
                        printable(ranges(stale), 100), join({of.begin(), of.end()}, ", ")),
            "they hold GPU memory, ports and /dev/shm: end them there with kill -9; an ezpz launch "
            "ends only those of its own run",
            ""},
           {host}});
    } else if (!undecided.empty()) {
      found.push_back(
          {{"leftovers", Health::unknown,
            fmt::format("processes of {}: pid {}; whether it still runs was not told",
                        join({of_undecided.begin(), of_undecided.end()}, ", "),
                        printable(ranges(undecided), 100)),
            "ask the scheduler for your running jobs, and end what belongs to none", ""},
           {host}});
    } else {
      clean.push_back(host);
    }
  }
  if (!clean.empty()) {
    found.push_back(
        {{"leftovers", Health::ok, "nothing of an earlier job or attempt", "", ""}, clean});
  }
  return found;
}

std::vector<PeerFinding> check_everything_of_peers(const PeerQuestion& question) {
  static constexpr std::vector<PeerFinding> (*checks[])(const PeerQuestion&) = {
      check_answers, check_clocks, check_names, check_alike, check_seen, check_leftovers};
  std::vector<PeerFinding> all;
  for (const auto check : checks) {
    for (PeerFinding& finding : check(question)) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace ezpz::doctor
