#include "supervise/ssh_run.h"

#include <errno.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/loop.h"
#include "base/text.h"
#include "launch/ssh_words.h"
#include "supervise/deaths.h"
#include "supervise/ssh_wire.h"
#include "supervise/whole_lines.h"

namespace ezpz::supervise {
namespace {

// Connections being made at once: each is a key exchange on this machine's cores. A host sees only
// its own; a jump host sees all of them, and its sshd begins to drop at ten (MaxStartups
// 10:30:100). What was dropped is tried again, after 0.5, 1, 2 and 4 s.
constexpr size_t kAtOnce = 32;
constexpr int kTries = 5;
constexpr double kFirstPause_s = 0.5;
constexpr double kLoginWait_s = 60;        // from ssh's start to ezpz's first word over there
constexpr double kLoginWaitFailed_s = 10;  // the same, once another host has failed
constexpr double kAlive_s = 10;            // between words to a node that has nothing to be told
constexpr double kNodeWaits_s = 40;        // for such a word; then the node takes us for lost
constexpr double kKillWait_s = 5;          // between SIGTERM and SIGKILL when tearing down
// For a host that does not answer even that: by then ssh itself has said that it is lost.
constexpr double kLostWait_s = 35;
constexpr double kSshEndWait_s = 5;  // for ssh to end after the node's last word
constexpr size_t kGreeting_bytes = 1U << 16U;
constexpr size_t kErrorLine_bytes = 1000;

struct Remote {
  std::string host;
  int node = 0;
  int first_rank = 0;
  int ranks = 0;
  pid_t pid = 0;
  Fd in;
  Fd out;
  Fd err;
  std::string unsent;
  bool writing = false;
  MessageReader reader;
  std::string greeting;  // what stands before ezpz's first word
  std::string errors;    // an unfinished line of ssh's own
  std::string last_error;
  std::set<int> running;
  int tries = 0;
  bool answered = false;  // ezpz runs over there
  bool ordered = false;
  bool troubled = false;  // and said that it cannot do, or end, all of it
  bool over = false;      // and has said its last word
  bool given_up = false;  // we ended its ssh, and said why
  bool ended = false;
  Loop::TimerId limit = 0;
};

class Launcher {
 public:
  explicit Launcher(const SshRun& run) : run_(run) {}

  int launch() {
    signal(SIGPIPE, SIG_IGN);
    set_nonblocking(1);
    set_nonblocking(2);
    raise_descriptor_limit();
    for (const int number : {SIGTERM, SIGINT}) {
      loop_.on_signal(number, [this, number] { on_stop(number); });
    }
    for (const int number : {SIGUSR1, SIGUSR2}) {
      loop_.on_signal(number, [this, number] { order_all(number); });
    }
    int first_rank = 0;
    for (size_t i = 0; i < run_.hosts.size(); ++i) {
      auto remote = std::make_unique<Remote>();
      remote->host = run_.hosts[i];
      remote->node = static_cast<int>(i);
      remote->first_rank = first_rank;
      remote->ranks = run_.ranks_on_host[i];
      first_rank += remote->ranks;
      remotes_.push_back(std::move(remote));
    }
    world_size_ = first_rank;
    keep_alive();
    connect_more();
    loop_.run_until([this] { return all_ended(); });
    deaths_.tell();
    lines_.finish_all();
    loop_.run_until([this] { return lines_.empty(); });
    return code_;
  }

 private:
  void say(const std::string& line) { lines_.say(2, "ezpz ssh: " + line); }

  // Three descriptors a host: hundreds of hosts need more than the usual soft limit.
  static void raise_descriptor_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  // ---- connecting

  void connect_more() {
    while (next_ < remotes_.size() && connecting_ < kAtOnce) {
      Remote& remote = *remotes_[next_++];
      if (stopping_ || start_failed_) {
        remote.ended = true;
      } else {
        ++connecting_;
        connect(remote);
      }
    }
    if (run_.kill_on_bad_exit && next_ == remotes_.size() && connecting_ == 0) order_or_leave();
  }

  void connect(Remote& remote) {
    ++remote.tries;
    Result<Pipe> in = make_pipe();
    Result<Pipe> out = make_pipe();
    Result<Pipe> err = make_pipe();
    SpawnSpec spec;
    spec.argv = launch::ssh_argv(run_.ssh, remote.host, run_.ezpz);
    spec.parent_death_signal = SIGKILL;
    Result<pid_t> pid =
        Error{"cannot make a pipe", "", "check the limit on open files (ulimit -n)"};
    if (in && out && err) {
      spec.stdin_fd = in->read.get();
      spec.stdout_fd = out->write.get();
      spec.stderr_fd = err->write.get();
      pid = spawn(spec);
    }
    if (!pid) {
      say("error: " + remote.host + ": ssh cannot be started: " + pid.error().one_line());
      remote.given_up = true;
      conclude(remote, Exit{});
      return;
    }
    remote.pid = *pid;
    remote.in = std::move(in->write);
    remote.out = std::move(out->read);
    remote.err = std::move(err->read);
    for (const Fd* fd : {&remote.in, &remote.out, &remote.err}) set_nonblocking(fd->get());
    listen(remote);
    loop_.watch_read(remote.err.get(), [this, &remote] { read_err(remote); });
    loop_.on_child(remote.pid, [this, &remote](Exit exit) { on_ssh_end(remote, exit); });
    limit_login(remote, kLoginWait_s);
  }

  void limit_login(Remote& remote, double seconds) {
    loop_.cancel(remote.limit);
    remote.limit = loop_.after(seconds, [this, &remote, seconds] {
      give_up(remote, fmt::format("error: cannot reach {}: no answer after {:.0f} s", remote.host,
                                  seconds));
    });
  }

  void on_answer(Remote& remote) {
    remote.answered = true;
    --connecting_;
    loop_.cancel(remote.limit);
    if (!run_.kill_on_bad_exit) order(remote);
    connect_more();
  }

  // Every host has answered or failed.
  void order_or_leave() {
    if (decided_) return;
    decided_ = true;
    for (const auto& remote : remotes_) {
      if (remote->ended) continue;
      if (start_failed_ || stopping_) {
        hang_up(*remote);
      } else {
        order(*remote);
      }
    }
  }

  void order(Remote& remote) {
    NodeOrder order;
    order.host = remote.host;
    order.folder = run_.folder;
    order.node = remote.node;
    order.first_rank = remote.first_rank;
    order.ranks = remote.ranks;
    order.world_size = world_size_;
    order.master_addr = run_.hosts.front();
    order.master_port = run_.master_port;
    order.silence_s = kNodeWaits_s;
    order.env = run_.env;
    order.command = run_.command;
    const std::string bytes = pack(order);
    if (bytes.size() > kMaxMessage_bytes) {
      give_up(remote, "error: " + remote.host + ": the environment and the command are too long");
      return;
    }
    remote.ordered = true;
    for (int i = 0; i < remote.ranks; ++i) remote.running.insert(remote.first_rank + i);
    send(remote, pack(Word::order, bytes));
  }

  // ---- to a node

  void send(Remote& remote, std::string_view bytes) {
    if (!remote.in) return;
    remote.unsent.append(bytes);
    flush(remote);
  }

  void flush(Remote& remote) {
    while (!remote.unsent.empty()) {
      const ssize_t n = write(remote.in.get(), remote.unsent.data(), remote.unsent.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0) {
        hang_up(remote);  // its ssh is gone, which is told where it is noticed
        return;
      }
      remote.unsent.erase(0, static_cast<size_t>(n));
    }
    const bool waits = !remote.unsent.empty();
    if (waits && !remote.writing)
      loop_.watch_write(remote.in.get(), [this, &remote] { flush(remote); });
    if (!waits && remote.writing) loop_.unwatch_write(remote.in.get());
    remote.writing = waits;
  }

  // The node sees the end of its input and ends what it has.
  void hang_up(Remote& remote) {
    if (!remote.in) return;
    if (remote.writing) loop_.unwatch_write(remote.in.get());
    remote.writing = false;
    remote.in.reset();
  }

  void order_all(int number) {
    const std::string order(1, static_cast<char>(number));
    for (const auto& remote : remotes_) {
      if (remote->ordered && !remote->over) send(*remote, pack(Word::signal, order));
    }
  }

  // A cut cable ends no connection over there: the node counts on hearing from us.
  void keep_alive() {
    for (const auto& remote : remotes_) {
      if (remote->ordered && !remote->ended && remote->unsent.empty()) {
        send(*remote, pack(Word::alive, ""));
      }
    }
    loop_.after(kAlive_s, [this] { keep_alive(); });
  }

  // ---- from a node

  // to_the_end: all that is there, whoever reads us; else it waits while we wait ourselves, and one
  // host that never stops does not keep the others (and signals) from being heard.
  void read_out(Remote& remote, bool to_the_end) {
    constexpr int kTurns = 16;
    for (int turn = 0; remote.out && (to_the_end || (turn < kTurns && !hold())); ++turn) {
      const ssize_t n = read(remote.out.get(), buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        loop_.unwatch_read(remote.out.get());
        remote.out.reset();
        return;
      }
      take(remote, {buffer_.data(), static_cast<size_t>(n)});
    }
  }

  // Whoever reads us is slower than the ranks: they are to wait, too.
  bool hold() {
    if (!lines_.full()) return false;
    for (const auto& remote : remotes_) {
      if (remote->out) loop_.unwatch_read(remote->out.get());
    }
    return true;
  }

  void go_on() {
    for (const auto& remote : remotes_) {
      if (remote->out) listen(*remote);
    }
  }

  void listen(Remote& remote) {
    loop_.watch_read(remote.out.get(), [this, &remote] { read_out(remote, false); });
  }

  void take(Remote& remote, std::string_view bytes) {
    if (remote.given_up) return;
    if (!remote.answered) {
      remote.greeting.append(bytes);
      // What a login shell prints of itself is of no use to anybody, unless it is all there is.
      const std::optional<Hello> hello = find_hello(remote.greeting);
      if (!hello) {
        if (remote.greeting.size() > kGreeting_bytes) {
          give_up(remote, "error: " + remote.host + ": its login shell prints without end");
        }
        return;
      }
      if (hello->version != kWireVersion) {
        give_up(remote,
                "error: " + remote.host + ": another version of ezpz: " + printable(run_.ezpz));
        return;
      }
      remote.reader.feed(std::string_view(remote.greeting).substr(hello->end));
      remote.greeting.clear();
      on_answer(remote);
    } else {
      remote.reader.feed(bytes);
    }
    while (true) {
      const Result<std::optional<Message>> message = remote.reader.next();
      if (!message) {
        give_up(remote, "error: " + remote.host + ": " + message.error().one_line());
        return;
      }
      if (!*message) return;
      hear(remote, **message);
    }
  }

  void hear(Remote& remote, const Message& message) {
    switch (message.word) {
      case Word::started:
        say(fmt::format("launching step on host {}, {} ranks: [{}]", remote.host, remote.ranks,
                        ranges({remote.running.begin(), remote.running.end()})));
        break;
      case Word::standard_output:
      case Word::standard_error:
        if (const auto output = read_output(message); output && is_of(remote, output->rank)) {
          const int fd = message.word == Word::standard_output ? 1 : 2;
          lines_.add({output->rank, fd}, fd, output->bytes);
        }
        break;
      case Word::ended:
        if (const auto end = read_end(message)) on_rank_end(remote, *end);
        break;
      case Word::trouble:
        say("error: " + remote.host + ": " + printable(message.bytes));
        remote.troubled = true;
        fail(kCannotStart);
        break;
      case Word::over:
        remote.over = true;
        hang_up(remote);
        loop_.cancel(remote.limit);
        remote.limit = loop_.after(kSshEndWait_s, [&remote] { kill(remote.pid, SIGKILL); });
        break;
      case Word::order:
      case Word::signal:
      case Word::alive:
        break;  // not for us
    }
  }

  static bool is_of(const Remote& remote, int rank) {
    return rank >= remote.first_rank && rank < remote.first_rank + remote.ranks;
  }

  void on_rank_end(Remote& remote, const RankEnd& end) {
    if (remote.running.erase(end.rank) == 0) return;
    lines_.finish({end.rank, 1});
    lines_.finish({end.rank, 2});
    if (end.exit.clean()) return;
    deaths_.add(remote.host, end.exit, end.rank);
    fail(end.exit.shell_code());
  }

  // ---- ssh itself

  void read_err(Remote& remote) {
    while (remote.err) {
      const ssize_t n = read(remote.err.get(), buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        loop_.unwatch_read(remote.err.get());
        remote.err.reset();
        return;
      }
      remote.errors.append(buffer_.data(), static_cast<size_t>(n));
      size_t begin = 0;
      for (size_t end = remote.errors.find('\n'); end != std::string::npos;
           end = remote.errors.find('\n', begin)) {
        tell_error(remote, std::string_view(remote.errors).substr(begin, end - begin));
        begin = end + 1;
      }
      remote.errors.erase(0, begin);
      if (remote.errors.size() > kGreeting_bytes) remote.errors.clear();
    }
  }

  // ssh does not always say whom it speaks of.
  void tell_error(Remote& remote, std::string_view line) {
    const std::string text = printable(trim(line), kErrorLine_bytes);
    if (text.empty()) return;
    remote.last_error = text;
    say(remote.host + ": " + text);
  }

  void on_ssh_end(Remote& remote, Exit exit) {
    read_out(remote, true);
    read_err(remote);
    if (!remote.errors.empty()) tell_error(remote, remote.errors);
    remote.errors.clear();
    loop_.cancel(remote.limit);
    hang_up(remote);
    for (Fd* fd : {&remote.out, &remote.err}) {
      if (*fd) loop_.unwatch_read(fd->get());
      fd->reset();
    }
    const bool over = remote.answered || remote.given_up || start_failed_ || stopping_;
    if (!over && exit.code == kSshFailed && remote.tries < kTries && was_dropped(remote)) {
      remote.pid = 0;
      remote.greeting.clear();
      remote.unsent.clear();
      loop_.after(kFirstPause_s * (1 << (remote.tries - 1)), [this, &remote, exit] {
        if (remote.ended) return;
        start_failed_ ? conclude(remote, exit) : connect(remote);
      });
      return;
    }
    conclude(remote, exit);
  }

  // By an sshd with too many logins under way; one that is not there refuses, or says nothing.
  static bool was_dropped(const Remote& remote) {
    for (const char* words :
         {"_exchange_identification: ", "Connection closed by ", "Connection reset by "}) {
      if (remote.last_error.find(words) != std::string::npos) return true;
    }
    return false;
  }

  void conclude(Remote& remote, Exit exit) {
    remote.ended = true;
    for (int i = 0; i < remote.ranks; ++i) {
      lines_.finish({remote.first_rank + i, 1});
      lines_.finish({remote.first_rank + i, 2});
    }
    if (!remote.answered) --connecting_;
    const bool all_told =
        remote.ordered ? remote.running.empty() || remote.troubled : remote.answered && decided_;
    if (!all_told) {
      if (!remote.given_up) tell_loss(remote, exit);
      fail(kSshFailed);
      on_start_failure();
    }
    connect_more();
  }

  // Whom ssh could not reach or has lost. Whether its ssh, its sshd, its ezpz or the host itself
  // went is not known here: a probe will tell.
  void tell_loss(const Remote& remote, Exit exit) {
    deaths_.tell();
    if (exit.signal != 0) {
      say("error: " + remote.host + ": its ssh was ended by " + exit.describe());
    } else if (remote.answered) {
      say("error: lost contact with " + remote.host + ": ssh ended with " + exit.describe());
    } else if (exit.code == 126 || exit.code == 127) {
      say("error: " + remote.host + ": cannot run ezpz: " + printable(run_.ezpz) + ": " +
          (exit.code == 127 ? "No such file or directory" : "Permission denied"));
    } else if (exit.code == kSshFailed) {
      say("error: cannot reach " + remote.host + ": ssh ended with " + exit.describe());
    } else {
      const std::vector<std::string> said = split_lines(trim(remote.greeting));
      if (!said.empty()) say(remote.host + ": " + printable(said.back()));
      say("error: " + remote.host + ": ezpz did not start over there: " + exit.describe());
    }
  }

  void give_up(Remote& remote, const std::string& why) {
    if (remote.ended || remote.given_up) return;
    say(why);
    remote.given_up = true;
    kill(remote.pid, SIGKILL);
  }

  // ---- the end

  void on_start_failure() {
    if (start_failed_ || !run_.kill_on_bad_exit || decided_) return;
    start_failed_ = true;
    for (const auto& remote : remotes_) {
      if (remote->pid != 0 && !remote->ended && !remote->answered) {
        limit_login(*remote, kLoginWaitFailed_s);
      }
    }
  }

  [[nodiscard]] bool all_ended() const {
    for (const auto& remote : remotes_) {
      if (!remote->ended) return false;
    }
    return true;
  }

  void fail(int code) {
    if (code_ == 0) code_ = code;
    if (!run_.kill_on_bad_exit || tearing_down_ || stopping_ || !decided_ || start_failed_) return;
    tearing_down_ = true;
    // Once it has been told.
    loop_.after(Deaths::kGather_s * 2, [this] {
      order_all(SIGTERM);
      deaths_.tell();
      if (!all_ended()) say("terminating the other ranks");
      loop_.after(kKillWait_s, [this] { kill_all(); });
    });
  }

  void on_stop(int number) {
    if (stopping_) {
      kill_all();
      return;
    }
    stopping_ = true;
    order_all(number);  // first: what is said may have to wait for a stuck terminal
    say(number == SIGINT ? "stopping: signal 2 (Interrupt)" : "stopping: signal 15 (Terminated)");
    for (const auto& remote : remotes_) {
      if (remote->ended || remote->ordered) continue;
      hang_up(*remote);
      remote->given_up = true;
      if (remote->pid != 0) {
        kill(remote->pid, SIGKILL);
      } else {
        remote->ended = true;
      }
    }
  }

  void kill_all() {
    order_all(SIGKILL);
    loop_.after(kLostWait_s, [this] {
      for (const auto& remote : remotes_) {
        if (remote->ended) continue;
        give_up(*remote, "error: lost contact with " + remote->host + ": it does not answer");
      }
    });
  }

  static constexpr int kCannotStart = 2;

  const SshRun& run_;
  Loop loop_;
  WholeLines lines_{loop_, [this] { go_on(); }};
  Deaths deaths_{loop_, [this](const std::string& line) { say(line); }};
  std::array<char, 65536> buffer_{};
  std::vector<std::unique_ptr<Remote>> remotes_;
  size_t next_ = 0;        // the first not yet connected
  size_t connecting_ = 0;  // begun, not yet answered
  int world_size_ = 0;
  bool decided_ = false;  // ranks were ordered, or will not be
  bool start_failed_ = false;
  bool stopping_ = false;
  bool tearing_down_ = false;
  int code_ = 0;
};

}  // namespace

int run_ssh(const SshRun& run) { return Launcher(run).launch(); }

}  // namespace ezpz::supervise
