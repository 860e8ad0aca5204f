// The words of the product as types: what an attempt's end is called, and one piece of evidence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ezpz {

// How an attempt ended, or what a fact speaks for.
enum class Kind {
  success,
  walltime,
  cancelled,
  preempted,
  node_failure,
  gpu_fault,
  fabric_fault,
  filesystem_fault,
  oom,
  app_error,
  env_fault,
  launcher_fault,
  port_in_use,
  collective_timeout,
  hang,
  unknown,
};
std::string_view to_string(Kind);
bool parse(std::string_view word, Kind* out);

// cause: may convict. cascade: a victim of teardown. context: worth showing, blames nobody.
enum class Role { cause, cascade, context };
std::string_view to_string(Role);
bool parse(std::string_view word, Role* out);

// What happened, in the terms attribution reasons with.
enum class Event {
  message,        // an error text of kind `kind`; the default
  death,          // processes ended: `signal` or `code` says how
  node_lost,      // the launcher or scheduler says the node itself is gone
  teardown,       // a mark: from here on processes die because somebody is ending them
  limit,          // the scheduler ended the job or step for a stated reason (kind says which)
  placement,      // `ranks` run on `host`
  launcher,       // the launcher could not start what it was asked to start
  within_host,    // ranks talk inside one host
  between_hosts,  // ranks talk over a network: the job has several hosts
  unreachable,  // somebody lost contact with `host`, or could not start on it: true or not, a hint
  lost_of_several,  // the launcher lost contact with `host`, and with none of its others
  network,          // a rank on the host of its label says which network it uses: `reason`
  provider,         // the same of what stands under that network: "cxi"
  version,          // the same of a library's version, as it was loaded: `reason`
  waiting,          // the program waits for something that did not answer: `reason`
  part_failed,      // a part of `host` is broken, as its own kernel or driver says
  not_booted,       // the host was given to the job and never came up
  aborted,          // the program ended all its ranks by a call (MPI_Abort): the others are victims
  new_run,          // what follows is another run of the job: a requeue, a restart of its workers
};
std::string_view to_string(Event);
inline bool is_lost_contact(Event event) {
  return event == Event::unreachable || event == Event::lost_of_several;
}
bool parse(std::string_view word, Event* out);

// A rank's word about what it runs on: said by each rank, so that of each host one is enough.
inline bool is_equipment(Event event) {
  return event == Event::network || event == Event::provider || event == Event::version;
}

// Where a fact came from; scheduler facts outrank text.
enum class Source { output, scheduler, agent, probe, self };
std::string_view to_string(Source);
bool parse(std::string_view word, Source* out);

struct Fact {
  double time_s = 0;  // wall clock, seconds since the epoch; 0 when replayed from a bare log
  Source source = Source::output;
  int64_t line = 0;     // 1-based line of the attempt's log; 0 when not from the log
  int64_t offset = 0;   // byte offset of that line's start
  std::string text;     // the line or message, escapes and label stripped, at most 400 bytes
  std::string pattern;  // id of the grammar entry: "srun.task_death"
  Kind kind = Kind::unknown;
  Role role = Role::context;
  Event event = Event::message;
  std::string host;        // as printed; empty when the message names none
  std::string label;       // host a line label ("<fqdn> <rank>: ") named; empty without a label
  std::vector<int> ranks;  // expanded, ascending; empty when the message names none
  std::string ip;
  int signal = 0;       // of a death by signal
  int code = -1;        // of a death by exit code; -1 unknown
  std::string reason;   // free capture: the time-limit word, the missing path, ...
  std::string step_id;  // launcher's step: "57520568.0"
  int64_t seq = -1;     // sequence number of a collective; -1 unknown
  bool weak = false;    // a complaint that programs often survive: counts where nothing else does
  int64_t step = -1;    // of a cause: the training step printed last before it; -1: none
};

// "sim3 ranks 2-3", "sim3", "ranks 2-3", or "" when neither is known.
std::string who(const Fact&);

}  // namespace ezpz
