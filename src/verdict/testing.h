// Facts as the matcher hands them over, and attempts to put them in: for the tests of this folder.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verdict/policy.h"
#include "verdict/verdict.h"

namespace ezpz::verdict::testing {

// Interfaces and domains come off, as a machine's table would say.
inline std::string key_of(std::string_view name) {
  name = name.substr(0, name.find('.'));
  return std::string(name.substr(0, name.find("-hsn")));
}

inline Fact fact(Event event, Kind kind, Role role, std::string pattern, std::string text) {
  Fact f;
  f.event = event;
  f.kind = kind;
  f.role = role;
  f.pattern = std::move(pattern);
  f.text = std::move(text);
  return f;
}

inline Fact killed(std::string host, std::vector<int> ranks) {
  Fact f = fact(Event::death, Kind::unknown, Role::cause, "srun.task_killed", host + ": Killed");
  f.host = std::move(host);
  f.ranks = std::move(ranks);
  f.signal = 9;
  return f;
}

inline Fact crashed(std::string host, std::vector<int> ranks, int signal) {
  Fact f = killed(std::move(host), std::move(ranks));
  f.pattern = "srun.task_crashed";
  f.text = f.host + ": signal " + std::to_string(signal);
  f.signal = signal;
  return f;
}

inline Fact exited(std::string host, std::vector<int> ranks, int code) {
  Fact f = killed(std::move(host), std::move(ranks));
  f.pattern = "srun.task_exit";
  f.text = f.host + ": Exited with exit code " + std::to_string(code);
  f.signal = 0;
  f.code = code;
  return f;
}

inline Fact terminated(std::string host, std::vector<int> ranks) {
  Fact f = crashed(std::move(host), std::move(ranks), 15);
  f.role = Role::cascade;
  f.pattern = "srun.task_terminated";
  return f;
}

inline Fact node_lost(std::string host) {
  Fact f = fact(Event::node_lost, Kind::node_failure, Role::cause, "srun.node_failure",
                "srun: error: Node failure on " + host);
  f.host = std::move(host);
  return f;
}

// "Terminating StepId", "Force Terminated", "Job step aborted: Waiting up to ..."
inline Fact teardown(Kind kind = Kind::unknown) {
  return fact(Event::teardown, kind, Role::cascade, "srun.terminating", "Terminating StepId=2.1");
}

// "*** STEP 2.1 ON nid001304 CANCELLED AT ... ***"
inline Fact cancel_banner() {
  return fact(Event::teardown, Kind::cancelled, Role::context, "slurmstepd.cancelled",
              "*** STEP 2.1 ON nid001304 CANCELLED AT ... ***");
}

inline Fact limit(Kind kind, std::string text) {
  return fact(Event::limit, kind, Role::cause, "slurmstepd.limit", std::move(text));
}

inline Fact message(Kind kind, std::string text, std::string host = "") {
  Fact f = fact(Event::message, kind, Role::cause, "some.message", std::move(text));
  f.host = std::move(host);
  return f;
}

inline Fact our_signal(Kind kind = Kind::cancelled) {
  Fact f = fact(Event::teardown, kind, Role::context, "self.stop", "SIGTERM to the step");
  f.source = Source::self;
  f.signal = 15;
  return f;
}

inline Exit exit_code(int code) {
  Exit exit;
  exit.code = code;
  return exit;
}

// nid001304 with ranks 0-3 and nid001306 with ranks 4-7, as in the lab; facts get line numbers.
inline AttemptRecord attempt(int code, std::vector<Fact> facts,
                             std::vector<std::string> hosts = {"nid001304", "nid001306"}) {
  AttemptRecord record;
  record.active = std::move(hosts);
  record.exit = exit_code(code);
  constexpr int kPerHost = 4;
  for (int rank = 0; rank < kPerHost * static_cast<int>(record.active.size()); ++rank) {
    record.host_of_rank[rank] = record.active[static_cast<size_t>(rank / kPerHost)];
  }
  int64_t line = 0;
  for (Fact& each : facts) each.line = each.source == Source::output ? ++line : 0;
  record.facts = std::move(facts);
  record.scheduler.end_time_s = 100'000;
  record.scheduler.job_state = "RUNNING";
  record.started_s = 1000;
  record.ended_s = 2000;
  return record;
}

inline Verdict judge_attempt(const AttemptRecord& record) { return attribute(record, key_of); }

inline std::vector<std::string> culprits(const Verdict& verdict) {
  std::vector<std::string> hosts;
  for (const Culprit& culprit : verdict.culprits) hosts.push_back(culprit.host);
  std::sort(hosts.begin(), hosts.end());
  return hosts;
}

inline std::string reason_against(const Verdict& verdict, size_t index) {
  for (const SetAside& each : verdict.set_aside) {
    if (each.fact == index) return each.reason;
  }
  return {};
}

inline evidence::Progress steps(int64_t first, int64_t last) {
  evidence::Progress progress;
  progress.first_step = first;
  progress.last_step = last;
  progress.interval = 1;
  return progress;
}

}  // namespace ezpz::verdict::testing
