#include "supervise/ssh_node.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/process.h"
#include "base/proctable.h"
#include "base/text.h"
#include "supervise/ssh_wire.h"

namespace ezpz::supervise {
namespace {

constexpr double kOrderWait_s = 120;  // the launcher may have many hosts to reach first
constexpr double kLostGrace_s = 2;  // for a checkpoint nobody will use; the host must be free soon
constexpr double kUnkillableWait_s = 4;    // for SIGKILL to be obeyed
constexpr double kFlushWait_s = 5;         // for the last words to leave
constexpr size_t kMuch_bytes = 1U << 20U;  // waiting to be sent: ranks wait, too
constexpr size_t kLittle_bytes = 1U << 18U;

class SshNode {
 public:
  int run() {
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    set_nonblocking(0);
    set_nonblocking(1);
    loop_.reap_strangers();
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
      loop_.on_signal(number, [this] { end_all(); });
    }
    send(hello());
    loop_.watch_read(0, [this] { read_orders(); });
    expect_word(kOrderWait_s);
    loop_.run_until([this] { return over_; });
    // Not left to the watches: what ranks wrote last is in their pipes.
    const std::vector<Process> left = end_descendants(kUnkillableWait_s);
    for (auto& [fd, pipe] : pipes_) drain(pipe);
    std::set<int> unkillable;
    for (const Process& process : left) unkillable.insert(process.pid);
    for (const auto& [rank, pid] : pids_) {
      if (!gave_up_ && unkillable.count(pid) == 0) send(pack_end(rank, Exit{-1, SIGKILL, false}));
    }
    if (!left.empty()) {
      const std::vector<int> pids(unkillable.begin(), unkillable.end());
      send(pack(Word::trouble, "pid " + ranges(pids) + " did not end on SIGKILL"));
    }
    send(pack(Word::over, ""));
    if (connected_) flush_all();
    return 0;
  }

 private:
  struct RankPipe {
    int rank = 0;
    Word word = Word::standard_output;
    Fd fd;
  };

  // ---- to the launcher

  void send(std::string_view bytes) {
    if (!connected_) return;
    unsent_.append(bytes);
    flush();
  }

  void flush() {
    while (sent_ < unsent_.size()) {
      const ssize_t n = write(1, unsent_.data() + sent_, unsent_.size() - sent_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0) {
        lose();
        return;
      }
      sent_ += static_cast<size_t>(n);
    }
    if (sent_ == unsent_.size() || sent_ > kMuch_bytes) {
      unsent_.erase(0, sent_);
      sent_ = 0;
    }
    const size_t waiting = unsent_.size() - sent_;
    if (waiting == 0 && writing_) loop_.unwatch_write(1);
    if (waiting > 0 && !writing_) loop_.watch_write(1, [this] { flush(); });
    writing_ = waiting > 0;
    if (waiting > kMuch_bytes) hold_ranks();
    if (waiting < kLittle_bytes) let_ranks_go();
  }

  void flush_all() {
    bool late = false;
    loop_.after(kFlushWait_s, [&late] { late = true; });
    loop_.run_until([&] { return late || !connected_ || sent_ == unsent_.size(); });
  }

  void hold_ranks() {
    if (held_) return;
    held_ = true;
    for (auto& [fd, pipe] : pipes_) {
      if (pipe.fd) loop_.unwatch_read(fd);
    }
  }

  void let_ranks_go() {
    if (!held_) return;
    held_ = false;
    for (auto& [fd, pipe] : pipes_) {
      if (pipe.fd) listen(pipe);
    }
  }

  // ---- from the launcher

  void read_orders() {
    std::array<char, 65536> buffer{};
    while (true) {
      const ssize_t n = read(0, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) {
        lose();
        return;
      }
      reader_.feed({buffer.data(), static_cast<size_t>(n)});
      while (true) {
        const Result<std::optional<Message>> message = reader_.next();
        if (!message) {
          give_up(message.error().one_line());
          return;
        }
        if (!*message) break;
        obey(**message);
      }
    }
  }

  void obey(const Message& message) {
    if (silence_s_ > 0) expect_word(silence_s_);
    if (message.word == Word::order && silence_s_ == 0) {
      const Result<NodeOrder> order = read_order(message.bytes);
      if (!order) {
        give_up(order.error().one_line());
        return;
      }
      silence_s_ = order->silence_s;
      expect_word(silence_s_);
      start(*order);
    } else if (message.word == Word::signal && message.bytes.size() == 1) {
      const int number = static_cast<unsigned char>(message.bytes[0]);
      for (const auto& [rank, pid] : pids_) kill(pid, number);
      if (number == SIGKILL) bound_the_end();
    }
  }

  void expect_word(double seconds) {
    loop_.cancel(silence_);
    silence_ = loop_.after(seconds, [this] { lose(); });
  }

  // ---- ranks

  void start(const NodeOrder& order) {
    if (!order.folder.empty() && chdir(order.folder.c_str()) != 0) {
      give_up("cannot enter the working directory: " + order.folder + ": " +
              strerrordesc_np(errno));
      return;
    }
    // PATH among them: the command is looked up as the ranks would.
    for (const auto& [name, value] : order.env) setenv(name.c_str(), value.c_str(), 1);
    if (!order.folder.empty()) setenv("PWD", order.folder.c_str(), 1);
    const std::string program = find_program(order.command[0]);
    if (program.empty()) {
      const bool there =
          order.command[0].find('/') != std::string::npos && file_exists(order.command[0]);
      give_up("execve(): " + order.command[0] + ": " + strerrordesc_np(there ? EACCES : ENOENT));
      return;
    }
    for (int local = 0; local < order.ranks; ++local) {
      if (!start_rank(order, local)) return;
    }
    send(pack(Word::started, ""));
  }

  bool start_rank(const NodeOrder& order, int local) {
    const int rank = order.first_rank + local;
    Result<Pipe> out = make_pipe();
    Result<Pipe> err = make_pipe();
    SpawnSpec spec;
    spec.argv = order.command;
    spec.env = variables_of(order, local);
    spec.parent_death_signal = SIGKILL;  // were this process killed, nobody else would end them
    if (out && err) {
      spec.stdout_fd = out->write.get();
      spec.stderr_fd = err->write.get();
    }
    const Result<pid_t> pid =
        out && err ? spawn(spec) : Result<pid_t>(out ? err.error() : out.error());
    if (!pid) {
      give_up("cannot start rank " + std::to_string(rank) + ": " + pid.error().one_line());
      return false;
    }
    pids_[rank] = *pid;
    add_pipe({rank, Word::standard_output, std::move(out->read)});
    add_pipe({rank, Word::standard_error, std::move(err->read)});
    loop_.on_child(*pid, [this, rank](Exit exit) { on_end(rank, exit); });
    return true;
  }

  void add_pipe(RankPipe pipe) {
    set_nonblocking(pipe.fd.get());
    const int fd = pipe.fd.get();
    RankPipe& kept = pipes_[fd] = std::move(pipe);
    if (!held_) listen(kept);
  }

  void listen(RankPipe& pipe) {
    loop_.watch_read(pipe.fd.get(), [this, &pipe] { read_some(pipe); });
  }

  // False at the end of what is there now.
  bool read_some(RankPipe& pipe) {
    if (!pipe.fd) return false;
    ssize_t n = 0;
    do {
      n = read(pipe.fd.get(), buffer_.data(), buffer_.size());
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
      send(pack_output(pipe.word, pipe.rank, {buffer_.data(), static_cast<size_t>(n)}));
      return true;
    }
    if (n < 0 && errno == EAGAIN) return false;
    loop_.unwatch_read(pipe.fd.get());
    pipe.fd.reset();  // its place stays: fd numbers are not used again while it is in the table
    return false;
  }

  // A pipe holds what it holds: bounded though nobody else may be reading.
  void drain(RankPipe& pipe) {
    constexpr int kMost = 64;
    for (int i = 0; i < kMost && read_some(pipe); ++i) {
    }
  }

  void on_end(int rank, Exit exit) {
    pids_.erase(rank);
    // Its last words first: whoever reads them knows that nothing follows.
    for (auto& [fd, pipe] : pipes_) {
      if (pipe.rank == rank) drain(pipe);
    }
    send(pack_end(rank, exit));
    if (pids_.empty()) over_ = true;
  }

  // ---- the end

  void lose() {
    connected_ = false;
    loop_.unwatch_read(0);
    end_all();
  }

  void end_all() {
    loop_.unwatch_read(0);
    if (pids_.empty()) {
      over_ = true;
      return;
    }
    if (ending_) return;
    ending_ = true;
    for (const auto& [rank, pid] : pids_) kill(pid, SIGTERM);
    loop_.after(kLostGrace_s, [this] { over_ = true; });
  }

  void give_up(const std::string& why) {
    send(pack(Word::trouble, why));
    gave_up_ = true;
    over_ = true;
  }

  void bound_the_end() {
    if (bounded_) return;
    bounded_ = true;
    loop_.after(kUnkillableWait_s, [this] { over_ = true; });
  }

  Loop loop_;
  std::array<char, 65536> buffer_{};
  MessageReader reader_;
  std::string unsent_;
  size_t sent_ = 0;
  bool writing_ = false;
  bool held_ = false;
  bool connected_ = true;
  bool ending_ = false;
  bool bounded_ = false;
  bool gave_up_ = false;
  bool over_ = false;
  double silence_s_ = 0;  // 0: no order yet
  Loop::TimerId silence_ = 0;
  std::map<int, RankPipe> pipes_;
  std::map<int, pid_t> pids_;
};

}  // namespace

int run_ssh_node() { return SshNode().run(); }

}  // namespace ezpz::supervise
