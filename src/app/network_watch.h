// Which network a launch should use, and what must be set for the ranks to tell which they do use.
#pragma once

#include <string>

#include "app/launch_options.h"
#include "base/process.h"
#include "site/environment.h"
#include "site/machine.h"
#include "verdict/attempt.h"

namespace ezpz::app {

struct NetworkWatch {
  verdict::NetworkWish wish;
  bool watched = false;    // several hosts, and a network to hold the ranks' words against
  EnvChanges env;          // NCCL_DEBUG and its kin; empty where the user has set one of them
  std::string why_unseen;  // why the lines may not come, when the user's own settings decide it
  std::string nccl_asked;  // the version of NCCL that the environment names: "2.24.3"
};

NetworkWatch watch_network(const LaunchOptions&, const site::Machine&, const site::Environment&,
                           size_t hosts);

// Of a loaded module (LOADEDMODULES), NCCL_VERSION, or a directory of LD_LIBRARY_PATH.
std::string nccl_asked_for(const site::Environment&);

}  // namespace ezpz::app
