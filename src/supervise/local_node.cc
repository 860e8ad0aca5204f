#include "supervise/local_node.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <map>

#include "base/file.h"
#include "base/loop.h"
#include "base/proctable.h"

namespace ezpz::supervise {
namespace {

// A process in uninterruptible sleep is left behind after this; the fence before the next attempt
// finds it.
constexpr double kClearLimit_s = 5;

class Node {
 public:
  Node(int orders_fd, int reports_fd) : orders_fd_(orders_fd), reports_fd_(reports_fd) {}

  int run(const Argv& command, const std::vector<LocalRank>& ranks) {
    set_nonblocking(orders_fd_);
    loop_.reap_strangers();
    loop_.watch_read(orders_fd_, [this] { read_orders(); });
    for (const LocalRank& rank : ranks) start(command, rank);
    loop_.run_until([this] { return pids_.empty() || gone_; });
    end_descendants(kClearLimit_s);
    return 0;
  }

 private:
  void start(const Argv& command, const LocalRank& rank) {
    SpawnSpec spec;
    spec.argv = command;
    spec.env = rank.env;
    const Result<pid_t> pid = spawn(spec);
    if (!pid) {
      write_all(2, "ezpz local: error: cannot start rank " + std::to_string(rank.rank) + ": " +
                       pid.error().one_line() + "\n");
      report(rank.rank, Exit{.code = 2});
      return;
    }
    pids_[rank.rank] = *pid;
    loop_.on_child(*pid, [this, id = rank.rank](Exit exit) {
      pids_.erase(id);
      report(id, exit);
    });
  }

  void report(int rank, Exit exit) const {
    const RankReport report{rank, exit};
    write_all(reports_fd_, {reinterpret_cast<const char*>(&report), sizeof report});
  }

  void read_orders() {
    unsigned char order = 0;
    ssize_t n = 0;
    while ((n = read(orders_fd_, &order, 1)) == 1) {
      for (const auto& [rank, pid] : pids_) kill(pid, order);
    }
    if (n == 0) {
      loop_.unwatch_read(orders_fd_);
      gone_ = true;
    }
  }

  Loop loop_;
  int orders_fd_;
  int reports_fd_;
  bool gone_ = false;  // the launcher is
  std::map<int, pid_t> pids_;
};

}  // namespace

int run_local_node(const Argv& command, const std::vector<LocalRank>& ranks, int orders_fd,
                   int reports_fd) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return Node(orders_fd, reports_fd).run(command, ranks);
}

}  // namespace ezpz::supervise
