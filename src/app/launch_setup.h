// From options and site to what a launch needs: which hosts, how many ranks, which launcher. Pure
// but for reading the hostfile and asking an mpiexec what it is.
#pragma once

#include <string>
#include <vector>

#include "app/launch_options.h"
#include "app/network_watch.h"
#include "app/site_view.h"
#include "base/node.h"
#include "base/result.h"
#include "launch/counts.h"
#include "launch/mpi_program.h"
#include "launch/plan.h"

namespace ezpz::app {

struct LaunchSetup {
  const launch::Launcher* launcher = nullptr;
  std::vector<Node> pool;  // hosts that may be used, in order: the first `active` run
  size_t active = 0;
  launch::Request request;  // all that is the same for every attempt
  NetworkWatch network;
  std::string job_id;
  std::vector<std::string> notes;  // worth a line to the user
};

Result<LaunchSetup> set_up_launch(const LaunchOptions&, const SiteView&, const launch::MpiSearch&);

}  // namespace ezpz::app
