#include "workload/fault.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "workload/waiting.h"

namespace toy {
namespace {

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::none:
      break;
    case FaultKind::exit:
      return "exit";
    case FaultKind::exit_before_first_step:
      return "exit_before_first_step";
    case FaultKind::segv:
      return "segv";
    case FaultKind::kill_self:
      return "kill_self";
    case FaultKind::hang:
      return "hang";
  }
  return "none";
}

[[noreturn]] void die_of(int signal_number) {
  signal(signal_number, SIG_DFL);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
  raise(signal_number);
  abort();  // not reached: the default action of these signals ends the process
}

[[noreturn]] void act(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::segv:
      die_of(SIGSEGV);
    case FaultKind::kill_self:
      die_of(SIGKILL);
    case FaultKind::hang:
      sleep_forever();
    case FaultKind::none:
    case FaultKind::exit:
    case FaultKind::exit_before_first_step:
      break;
  }
  _Exit(fault.exit_code);
}

}  // namespace

bool is_meant(const Fault& fault, const Identity& me) {
  const bool my_rank =
      fault.ranks.empty() || std::ranges::find(fault.ranks, me.rank) != fault.ranks.end();
  const bool my_attempt = !fault.attempt || *fault.attempt == me.attempt;
  const bool my_host = fault.host.empty() || fault.host == me.host;
  return my_rank && my_attempt && my_host;
}

void fault_before_first_step(const Fault& fault, const Identity& me, Receipts& receipts) {
  if (fault.kind != FaultKind::exit_before_first_step || !is_meant(fault, me)) return;
  receipts.add("fault", std::string("\"kind\":\"") + name_of(fault.kind) + "\"");
  fprintf(stderr, "toy_train: rank %d cannot start: told to leave with code %d\n", me.rank,
          fault.exit_code);
  act(fault);
}

void fault_at_step(const Fault& fault, const Identity& me, int64_t step, Receipts& receipts) {
  if (fault.kind == FaultKind::none || fault.kind == FaultKind::exit_before_first_step) return;
  const size_t turn = std::min(static_cast<size_t>(std::max(me.attempt, 1)), fault.at_step.size());
  if (step != fault.at_step[turn - 1] || !is_meant(fault, me)) return;
  receipts.add("fault", std::string("\"kind\":\"") + name_of(fault.kind) +
                            "\",\"step\":" + std::to_string(step));
  act(fault);
}

}  // namespace toy
