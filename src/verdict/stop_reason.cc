#include "verdict/stop_reason.h"

#include <array>

namespace ezpz::verdict {
namespace {

constexpr std::array kReasons{
    StopReason{"success", "the job ended with exit code 0 and nothing contradicts it"},
    StopReason{"walltime", "the scheduler's time limit was reached"},
    StopReason{"cancelled", "somebody cancelled the step or the job, or stopped ezpz"},
    StopReason{"preempted", "the scheduler took the nodes back for another job"},
    StopReason{"job_over", "the scheduler has ended the job, so nothing can be started in it"},
    StopReason{"exhausted", "more hosts had to be replaced than spares were left"},
    StopReason{"max_retries", "the relaunches allowed by --max-failover-retries are spent"},
    StopReason{"walltime_near",
               "the time left is shorter than a restart plus one checkpoint interval"},
    StopReason{"same_seat",
               "the same rank positions died on different hosts near the same step: the program "
               "or its data, not the hosts"},
    StopReason{"stuck_at_step", "the same failure came twice at the same step"},
    StopReason{"stuck_pre_training",
               "two attempts ended before any training step and no host was convicted"},
    StopReason{"stuck",
               "relaunching made no progress and no host was convicted: look for a bug in "
               "the program, no spare is spent on it"},
    StopReason{"env_fault",
               "the environment or the command is wrong on every host; see the remedy"},
    StopReason{"filesystem_fault",
               "the filesystem failed again after every relaunch allowed for it"},
    StopReason{"launcher_fault", "the launcher failed again after every relaunch allowed for it"},
    StopReason{"launch_failed", "the launcher itself could not be started"},
    StopReason{"port_in_use", "a port was taken again after every relaunch allowed for it"},
    StopReason{"no_evidence",
               "no probe failed, nothing names a host, and a guess is not allowed (--blind)"},
    StopReason{"retired_host_named",
               "the evidence names only a host that was retired earlier: ranks may have run where "
               "they should not, and guessing another host would be wrong"},
};

}  // namespace

std::span<const StopReason> stop_reasons() { return kReasons; }

std::string_view meaning_of_stop(std::string_view word) {
  for (const StopReason& reason : kReasons) {
    if (reason.word == word) return reason.meaning;
  }
  return {};
}

}  // namespace ezpz::verdict
