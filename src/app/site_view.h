// What launch and info both begin with: which machine, which scheduler, which hosts.
#pragma once

#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "site/machine.h"
#include "site/scheduler.h"

namespace ezpz::app {

struct SiteView {
  site::Environment env;
  std::string hostname;
  std::string fqdn;  // empty: not asked for, or unknown
  site::Detection machine;
  std::vector<std::string> machines;  // names of all that are registered, but for "generic"
  site::Discovery job;
  std::vector<std::string> trouble;
};

// machine_name: --machine, may be empty. Only --machine and the tables can make this fail.
Result<SiteView> look_around(Loop&, const std::string& machine_name,
                             const std::string& machines_dir, site::Depth);

}  // namespace ezpz::app
