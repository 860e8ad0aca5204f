#include "supervise/local_nodes.h"

#include <errno.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/loop.h"
#include "base/proctable.h"
#include "base/text.h"
#include "supervise/deaths.h"
#include "supervise/local_node.h"

namespace ezpz::supervise {
namespace {

constexpr int kNodeLostCode = 137;
constexpr double kUnkillableWait_s = 5;

void say(const std::string& line) { write_all(2, "ezpz local: " + line + "\n"); }

struct NodeHandle {
  std::string host;
  pid_t pid = 0;
  Fd orders;
  Fd reports;
  std::set<int> running;
  bool ended = false;
};

class Launcher {
 public:
  explicit Launcher(const LocalRun& run) : run_(run) {}

  int launch() {
    if (find_program(run_.command.at(0)).empty()) {
      const bool there =
          run_.command[0].find('/') != std::string::npos && file_exists(run_.command[0]);
      say("error: execve(): " + run_.command[0] + ": " +
          (there ? "Permission denied" : "No such file or directory"));
      return 2;
    }
    raise_descriptor_limit();
    loop_.on_signal(SIGTERM, [this] { on_term(); });
    for (const int number : {SIGUSR1, SIGUSR2}) {
      loop_.on_signal(number, [this, number] { order_all(number); });
    }
    int first_rank = 0;
    for (size_t i = 0; i < run_.hosts.size(); ++i) {
      if (!start_node(i, first_rank)) return 1;
      first_rank += run_.ranks_on_host[i];
    }
    loop_.run_until([this] { return all_ended(); });
    deaths_.tell();
    return code_;
  }

 private:
  // Two descriptors a node: hundreds of nodes need more than the usual soft limit. The ranks get
  // the user's own back.
  void raise_descriptor_limit() {
    getrlimit(RLIMIT_NOFILE, &users_limit_);
    rlimit raised = users_limit_;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised);
  }

  bool start_node(size_t index, int first_rank) {
    auto node = std::make_unique<NodeHandle>();
    node->host = run_.hosts[index];
    const int count = run_.ranks_on_host[index];
    std::vector<LocalRank> ranks;
    for (int i = 0; i < count; ++i) {
      ranks.push_back({first_rank + i, i, rank_env(index, first_rank + i, i, count)});
      node->running.insert(first_rank + i);
    }
    say(fmt::format("launching step on host {}, {} ranks: [{}]", printable(node->host), count,
                    ranges(std::vector<int>(node->running.begin(), node->running.end()))));
    Result<Pipe> orders = make_pipe();
    Result<Pipe> reports = make_pipe();
    if (!orders || !reports) {
      say("error: cannot make a pipe");
      return false;
    }
    const int orders_fd = orders->read.get();
    const int reports_fd = reports->write.get();
    const Result<pid_t> pid = fork_helper("ezpz-node", {0, 1, 2, orders_fd, reports_fd}, [&] {
      setrlimit(RLIMIT_NOFILE, &users_limit_);
      return run_local_node(run_.command, ranks, orders_fd, reports_fd);
    });
    if (!pid) {
      say("error: " + pid.error().one_line());
      return false;
    }
    node->pid = *pid;
    node->orders = std::move(orders->write);
    node->reports = std::move(reports->read);
    set_nonblocking(node->reports.get());
    NodeHandle* handle = node.get();
    loop_.watch_read(node->reports.get(), [this, handle] { read_reports(*handle); });
    loop_.on_child(node->pid, [this, handle](Exit) { on_node_end(*handle); });
    nodes_.push_back(std::move(node));
    return true;
  }

  [[nodiscard]] EnvChanges rank_env(size_t node_index, int rank, int local_rank,
                                    int local_size) const {
    int world_size = 0;
    for (const int count : run_.ranks_on_host) world_size += count;
    return {{"RANK", std::to_string(rank)},
            {"LOCAL_RANK", std::to_string(local_rank)},
            {"WORLD_SIZE", std::to_string(world_size)},
            {"LOCAL_WORLD_SIZE", std::to_string(local_size)},
            {"NODE_RANK", std::to_string(node_index)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", std::to_string(run_.master_port)},
            {"EZPZ_NODE", run_.hosts[node_index]}};
  }

  [[nodiscard]] bool all_ended() const {
    for (const auto& node : nodes_) {
      if (!node->ended) return false;
    }
    return true;
  }

  void order_all(int number) {
    const char order = static_cast<char>(number);
    for (const auto& node : nodes_) {
      if (node->orders) write_all(node->orders.get(), {&order, 1});
    }
  }

  void on_term() {
    if (stopping_) {
      kill_all();
      return;
    }
    stopping_ = true;
    order_all(SIGTERM);  // first: what is said may have to wait for a stuck terminal
    say("stopping: signal 15 (Terminated)");
  }

  void read_reports(NodeHandle& node) {
    RankReport report{};
    while (node.reports && read(node.reports.get(), &report, sizeof report) ==
                               static_cast<ssize_t>(sizeof report)) {
      node.running.erase(report.rank);
      if (report.exit.clean()) continue;
      if (code_ == 0) code_ = report.exit.shell_code();
      deaths_.add(node.host, report.exit, report.rank);
      consider_teardown();
    }
  }

  void on_node_end(NodeHandle& node) {
    read_reports(node);
    loop_.unwatch_read(node.reports.get());
    node.reports.reset();
    node.orders.reset();
    node.ended = true;
    if (node.running.empty()) return;
    // The node process is gone and did not report its ranks: the node itself is lost.
    kill_session(node.pid, SIGKILL);
    deaths_.tell();
    say("error: Node failure on " + printable(node.host));
    if (code_ == 0) code_ = kNodeLostCode;
    consider_teardown();
  }

  // The first bad end takes the others along, once it has been told.
  void consider_teardown() {
    if (!run_.kill_on_bad_exit || tearing_down_ || stopping_) return;
    tearing_down_ = true;
    loop_.after(Deaths::kGather_s * 2, [this] {
      order_all(SIGTERM);
      deaths_.tell();
      say("terminating the other ranks");
      loop_.after(run_.kill_wait_s, [this] { kill_all(); });
    });
  }

  // SIGKILL, and a bound on waiting for it: a rank in uninterruptible sleep (a frozen file system)
  // does not end, and is left for the fence before the next attempt.
  void kill_all() {
    order_all(SIGKILL);
    loop_.after(kUnkillableWait_s, [this] {
      for (const auto& node : nodes_) {
        if (node->ended) continue;
        deaths_.tell();
        say("error: " + printable(node->host) + ": " + ranks_phrase(node->running) +
            " did not end on SIGKILL");
        if (code_ == 0) code_ = kNodeLostCode;
        node->ended = true;
      }
    });
  }

  const LocalRun& run_;
  rlimit users_limit_{};
  Loop loop_;
  std::vector<std::unique_ptr<NodeHandle>> nodes_;
  Deaths deaths_{loop_, say};
  bool stopping_ = false;
  bool tearing_down_ = false;
  int code_ = 0;
};

}  // namespace

int run_local_nodes(const LocalRun& run) { return Launcher(run).launch(); }

}  // namespace ezpz::supervise
