#include "app/site_view.h"

#include "base/process.h"
#include "site/ask.h"

namespace ezpz::app {

Result<SiteView> look_around(Loop& loop, const std::string& machine_name,
                             const std::string& machines_dir, site::Depth depth) {
  SiteView view;
  view.env = site::current_environment();
  view.hostname = site::own_hostname();
  const AskHelper ask = [&loop](const Argv& argv, double timeout_s) {
    return site::run_question(loop, argv, timeout_s);
  };
  const auto exists = [](const std::string& name) { return !find_program(name).empty(); };
  view.job = site::discover(view.env, ask, exists, depth);

  const Result<std::vector<site::Machine>> machines = site::load_machines(machines_dir);
  if (!machines) return machines.error();
  for (const site::Machine& machine : *machines) {
    if (machine.name != "generic") view.machines.push_back(machine.name);
  }
  if (!machine_name.empty()) {
    Result<site::Detection> named = site::named_machine(*machines, machine_name);
    if (!named) return named.error();
    view.machine = std::move(*named);
    return view;
  }
  site::Identity identity{view.hostname, "", view.job.cluster, view.env};
  view.machine = site::detect_machine(*machines, identity);
  const bool worth_asking = !view.machine.known && view.job.in_job();
  if (worth_asking || depth == site::Depth::everything) {
    // The full name costs a question to the resolver, and a broken one a second.
    std::string trouble;
    view.fqdn = site::own_fqdn(view.hostname, ask, &trouble);
    if (!trouble.empty()) view.trouble.push_back(trouble);
    identity.fqdn = view.fqdn;
    view.machine = site::detect_machine(*machines, identity);
  }
  return view;
}

}  // namespace ezpz::app
