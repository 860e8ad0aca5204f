// The answer of doctor, for a person and for a program. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/merge.h"

namespace ezpz::doctor {

struct Report {
  std::string version;
  std::string host;  // that doctor ran on
  std::string machine;
  std::string machine_title;
  std::string machine_why;
  std::string scheduler;           // "slurm", "pbs", "none"
  std::string job_id;              // empty: none
  std::vector<std::string> hosts;  // of the job or the hostfile
  size_t asked = 0;                // nodes that were asked to look at themselves; 0: none was
  size_t answered = 0;
  double took_s = 0;
  std::vector<std::string> not_answered;  // questions that failed, one line each
  std::vector<Row> rows;
};

// Errors first, then warnings, then what is unknown; of what is fine the names, or a line each.
enum class Fine { names, lines };
std::string tell(const Report&, Fine = Fine::names);
std::string tell_json(const Report&);

// 0; 1 when there is an error; with strict 2 when there is a warning and no error.
int exit_code(const Report&, bool strict);

}  // namespace ezpz::doctor
