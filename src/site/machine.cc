#include "site/machine.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/text.h"

namespace ezpz::site {
namespace {

struct Match {
  const Machine* machine;
  std::string why;
};

// The pattern of the list that fits, or null.
const std::string* fitting(const std::vector<std::string>& patterns, std::string_view text) {
  for (const std::string& pattern : patterns) {
    if (!text.empty() && glob_match(pattern, text)) return &pattern;
  }
  return nullptr;
}

std::string sentence(const char* what, const std::string& value, const std::string& pattern) {
  return std::string(what) + " \"" + printable(value) + "\" matches \"" + pattern + "\"";
}

using Patterns = std::function<const std::vector<std::string>&(const Machine&)>;

std::vector<Match> matches(const std::vector<Machine>& machines, const char* what,
                           const std::string& value, const Patterns& patterns) {
  std::vector<Match> found;
  for (const Machine& machine : machines) {
    if (const std::string* pattern = fitting(patterns(machine), value)) {
      found.push_back({&machine, sentence(what, value, *pattern)});
    }
  }
  return found;
}

std::vector<Match> env_matches(const std::vector<Machine>& machines, const Environment& env) {
  std::vector<Match> found;
  for (const Machine& machine : machines) {
    for (const EnvMarker& marker : machine.env) {
      const std::optional<std::string> value = get(env, marker.name);
      if (!value || !glob_match(marker.value, *value)) continue;
      found.push_back({&machine, "environment has " + marker.name + "=" + printable(*value)});
      break;
    }
  }
  return found;
}

std::string names(const std::vector<Match>& found) {
  std::vector<std::string> list;
  list.reserve(found.size());
  for (const Match& match : found) list.push_back(match.machine->name);
  return join(list, " or ");
}

// A full name that says where it is; "localhost.localdomain" and kin say nothing.
bool tells_domain(const std::string& fqdn) {
  if (fqdn.find('.') == std::string::npos) return false;
  for (const char* local : {"*.local", "*.localdomain", "*.internal", "localhost*"}) {
    if (glob_match(local, fqdn)) return false;
  }
  return true;
}

// Why a shared host name is not this machine's after all; empty when nothing speaks against it.
std::string contradiction(const Machine& machine, const std::string& fqdn,
                          const std::string& cluster) {
  if (tells_domain(fqdn) && !machine.fqdns.empty()) {
    return "the full name \"" + printable(fqdn) + "\" is not one of its names";
  }
  if (!cluster.empty() && !machine.clusters.empty()) {
    return "the scheduler's cluster is \"" + printable(cluster) + "\"";
  }
  return "";
}

}  // namespace

NodeNaming naming_of_all(const std::vector<Machine>& machines) {
  NodeNaming all;
  const auto add = [](const std::vector<std::string>& from, std::vector<std::string>* to) {
    for (const std::string& pattern : from) {
      if (pattern == ".*" || std::find(to->begin(), to->end(), pattern) != to->end()) continue;
      to->push_back(pattern);
    }
  };
  for (const Machine& machine : machines) {
    add(machine.naming.domains, &all.domains);
    add(machine.naming.interfaces, &all.interfaces);
  }
  return all;
}

const Machine* find_machine(const std::vector<Machine>& machines, std::string_view name) {
  const std::string wanted = lower(name);
  for (const Machine& machine : machines) {
    if (machine.name == wanted) return &machine;
  }
  return nullptr;
}

Detection detect_machine(const std::vector<Machine>& machines, const Identity& identity) {
  const auto decided = [](const Match& match) {
    return Detection{*match.machine, match.why, true};
  };
  const std::string label = identity.hostname.substr(0, identity.hostname.find('.'));
  const bool hostname_is_full = identity.hostname.find('.') != std::string::npos;
  const std::string& fqdn =
      identity.fqdn.empty() && hostname_is_full ? identity.hostname : identity.fqdn;

  const std::vector<Match> own = matches(
      machines, "host name", label, [](const Machine& m) -> auto& { return m.hostnames; });
  if (own.size() == 1) return decided(own[0]);

  const std::vector<Match> by_fqdn = matches(
      machines, "full host name", fqdn, [](const Machine& m) -> auto& { return m.fqdns; });
  if (!by_fqdn.empty()) return decided(by_fqdn[0]);
  if (hostname_is_full && fqdn != identity.hostname) {
    const std::vector<Match> by_long_hostname = matches(
        machines, "host name", identity.hostname,
        [](const Machine& m) -> auto& { return m.fqdns; });
    if (!by_long_hostname.empty()) return decided(by_long_hostname[0]);
  }
  const std::vector<Match> by_cluster = matches(
      machines, "the scheduler's cluster", identity.cluster,
      [](const Machine& m) -> auto& { return m.clusters; });
  if (!by_cluster.empty()) return decided(by_cluster[0]);
  const std::vector<Match> by_env = env_matches(machines, identity.env);
  if (!by_env.empty()) return decided(by_env[0]);

  const std::vector<Match> shared = matches(
      machines, "host name", label, [](const Machine& m) -> auto& { return m.shared_hostnames; });
  std::string why = "no machine table fits host name \"" + printable(identity.hostname) + "\"";
  if (shared.size() == 1) {
    const std::string against = contradiction(*shared[0].machine, fqdn, identity.cluster);
    if (against.empty()) return decided(shared[0]);
    why = shared[0].why + " of " + shared[0].machine->name + ", but " + against;
  } else if (shared.size() > 1) {
    why = shared[0].why + ", which could be " + names(shared);
  }
  const Machine* generic = find_machine(machines, "generic");
  return {generic != nullptr ? *generic : Machine(), why, false};
}

Result<Detection> named_machine(const std::vector<Machine>& machines, const std::string& name) {
  if (const Machine* machine = find_machine(machines, name)) {
    return Detection{*machine, "--machine says so", machine->name != "generic"};
  }
  std::vector<std::string> known;
  known.reserve(machines.size());
  for (const Machine& machine : machines) known.push_back(machine.name);
  const auto suggestion = nearest(name, known);
  return Error{
      "unknown machine '" + printable(name) + "'", "--machine",
      (suggestion ? "did you mean '" + *suggestion + "'? " : "") + "known: " + join(known, ", ")};
}

}  // namespace ezpz::site
