// What only shows when nodes are compared: with each other, and with what is known here. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "doctor/check.h"
#include "doctor/node_report.h"
#include "site/machine.h"

namespace ezpz::doctor {

// One node's answer and when it was asked for, by this host's clock.
struct PeerAnswer {
  NodeReport report;
  double asked_s = 0;
  double answered_s = 0;
};

struct PeerQuestion {
  std::map<std::string, PeerAnswer> answers;        // by host as spelled
  std::map<std::string, std::string> not_answered;  // host -> what is known of why
  bool alone = false;        // only the host that asks: nothing to compare, no launcher between
  std::string first_host;    // where rank 0 would be; the others look it up
  std::string cwd;           // here
  std::string log_dir_mark;  // a path that was made here, below the log directory; empty: none
  std::string job_id;        // empty: not in a job
  std::set<std::string> running_jobs;  // of this user
  bool running_jobs_known = false;
  std::set<std::string> running_attempts;  // ids of attempts whose launcher lives on this host
  site::Machine machine;
};

// A finding that is a node's own: hosts it is true of.
struct PeerFinding {
  Finding finding;
  std::vector<std::string> hosts;
};

std::vector<PeerFinding> check_answers(const PeerQuestion&);
std::vector<PeerFinding> check_clocks(const PeerQuestion&);
std::vector<PeerFinding> check_names(const PeerQuestion&);
std::vector<PeerFinding> check_alike(const PeerQuestion&);
std::vector<PeerFinding> check_seen(const PeerQuestion&);  // the log directory and the cwd
std::vector<PeerFinding> check_leftovers(const PeerQuestion&);

std::vector<PeerFinding> check_everything_of_peers(const PeerQuestion&);

// How far a node's clock is ahead of ours: surely between these (seconds).
struct ClockOffset {
  double least_s = 0;
  double most_s = 0;
};
ClockOffset clock_offset(const PeerAnswer&);

// "57.1a2b.2" and "7.server.site.1a2b.2": the job and the run.
struct AttemptName {
  std::string job_id;
  std::string run;  // "57.1a2b"
};
AttemptName parse_attempt_id(const std::string&);

}  // namespace ezpz::doctor
