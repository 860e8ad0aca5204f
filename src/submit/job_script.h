// A batch script for sbatch or qsub, made to be read: what was asked for stands in directives, what
// the job resolved to is printed when it runs, and the last line becomes `ezpz launch`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"

namespace ezpz::submit {

struct JobRequest {
  int nodes = 1;   // in all, spares included
  int spares = 0;  // of them
  std::optional<int> ranks_per_node;
  std::optional<double> time_s;
  std::string name;       // never empty: default_name()
  std::string queue;      // SLURM: the quality of service, as sbatch's -q
  std::string partition;  // SLURM
  std::string account;
  std::string constraint;              // SLURM
  std::string select;                  // PBS: what each chunk must be, "system=polaris"
  std::string place = "scatter:excl";  // PBS
  std::string filesystems;             // PBS: "home:eagle"
  std::optional<int> gpus_per_node;    // nothing: the scheduler is not asked for any
  double signal_before_end_s = 0;      // SLURM: SIGUSR1 to ezpz so long before the end; 0: none
  std::vector<std::string> modules;    // loaded in this order
  std::string venv;                    // its bin/activate is sourced
  std::string require_net;             // handed on to `ezpz launch`; empty: it is not
  EnvChanges env;                      // an empty value stays empty; nullopt unsets
  Argv scheduler_flags;                // the user's own, for sbatch or qsub as they are
  std::string working_dir;             // absolute
  std::string log_dir;                 // absolute: the scheduler's output, and ezpz's records
  std::string self_path;               // ezpz, as the nodes see it
  Argv command;                        // the program, or an `ezpz launch ...` of the user's own
};

struct JobScript {
  std::string text;
  // What starts it, but for the script's path, which comes last: raw flags, and options whose
  // values a directive could not hold (a path with a space).
  Argv submit;
};

Result<JobScript> write_slurm_script(const JobRequest&);
Result<JobScript> write_pbs_script(const JobRequest&);

// "train" for `python3 train.py`: the first script among the words, else the program.
std::string default_name(const Argv& command);

// "12:00:00", "1-00:00:00", "90m", "2h", "1d": seconds. Nothing for a number alone, which SLURM
// takes for minutes and PBS for seconds, and for "1:30", which is not what it looks like to either.
std::optional<double> parse_time(std::string_view text);

// A word for bash, on one line whatever it holds: a newline becomes $'\n', so that no part of a
// word can pass for a directive.
std::string bash_word(std::string_view word);

// sbatch --parsable prints "57" or "57;cluster", qsub "57.server".
Result<std::string> read_job_id(std::string_view printed);

}  // namespace ezpz::submit
