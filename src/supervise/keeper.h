// The process that outlives ezpz for a moment: if ezpz is SIGKILLed, the keeper sees its pipe close
// and ends what ezpz had started, tasks that ignore SIGTERM included. PDEATHSIG cannot do that: it
// reaches only the launcher, and srun's tasks live on other nodes.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/file.h"
#include "base/loop.h"
#include "base/process.h"
#include "base/result.h"

namespace ezpz::supervise {

class Keeper {
 public:
  explicit Keeper(Loop& loop) : loop_(loop) {}
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Forks; call while the process has one thread.
  Status start();
  // From now on: SIGKILL this process and its session. Nothing else of ours can be in that session.
  void guard_session(pid_t leader);
  // From now on: run this (bounded) too, for what the session's death does not reach:
  // {"scancel", "--signal=KILL", "123.4"}.
  void guard_command(const Argv& argv);
  // The attempt has ended: forget both.
  void release();

 private:
  void send(const std::string& message);

  Loop& loop_;
  Fd to_;
};

}  // namespace ezpz::supervise
