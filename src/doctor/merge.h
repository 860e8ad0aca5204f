// From findings of one host and of many to one row a check: the same trouble on many nodes is one
// group with their names. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "doctor/check.h"
#include "doctor/check_peers.h"

namespace ezpz::doctor {

// Hosts of which one finding is true; without hosts it is of the job, or of this host.
struct Group {
  Health health = Health::unknown;
  std::string why;  // of the first of them: figures in it may differ among the hosts
  std::string remedy;
  std::string reference;
  std::vector<std::string> hosts;
  bool figures_differ = false;
};

struct Row {
  std::string check;
  std::vector<Group> groups;  // most worrying first
  size_t of = 0;              // so many hosts were asked; 0: it is no check of nodes
  [[nodiscard]] Health health() const;
};

// One row for each check. Of findings of the job, and of hosts; asked: how many hosts were.
std::vector<Row> merge(const std::vector<Finding>& of_job, const std::vector<PeerFinding>& of_hosts,
                       size_t asked);

Health worst(const std::vector<Row>&);

}  // namespace ezpz::doctor
