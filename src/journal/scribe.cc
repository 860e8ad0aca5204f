#include "journal/scribe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/process.h"

namespace ezpz::journal {
namespace {

enum Op : uint32_t {
  kOpen,
  kAppend,
  kAppendWhole,
  kReplace,
  kMakeDirectories,
  kMakeNewDirectory,
};

struct Header {
  uint32_t op;
  int32_t file;
  uint64_t bytes;
};

constexpr int kPipeBytes = 1 << 20;

// ---- the forked side: blocking calls, one after the other ----

bool read_exactly(int fd, char* into, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = read(fd, into, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    into += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// A terminal or pipe shared with others may be non-blocking by their doing: wait, do not lose.
int append_bytes(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      usleep(5000);
      continue;
    }
    if (n < 0) return errno;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return 0;
}

// Moves bytes from the pipe to the file inside the kernel: one copy less of everything a job
// prints. How many bytes were taken from the pipe; fewer than asked for only with *trouble set, or
// where the file takes no splice (a terminal, a file opened to append).
size_t splice_bytes(int in, int fd, size_t size, int* trouble) {
  size_t moved = 0;
  while (moved < size) {
    const ssize_t n = splice(in, nullptr, fd, nullptr, size - moved, SPLICE_F_MOVE);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      usleep(5000);
      continue;
    }
    if (n < 0 && errno != EINVAL) *trouble = errno;
    if (n <= 0) break;
    moved += static_cast<size_t>(n);
  }
  return moved;
}

bool is_regular(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

int append_whole_bytes(int fd, const std::string& bytes) {
  struct stat before {};
  const bool known = fstat(fd, &before) == 0;
  const int trouble = append_bytes(fd, bytes.data(), bytes.size());
  if (trouble != 0 && known) {
    if (ftruncate(fd, before.st_size) != 0) return errno;
    lseek(fd, 0, SEEK_END);
  }
  return trouble;
}

class Worker {
 public:
  Worker(int in, int acks) : in_(in), acks_(acks) {}

  int run() {
    Header header{};
    while (read_exactly(in_, reinterpret_cast<char*>(&header), sizeof header)) {
      int trouble = 0;
      const size_t moved = header.op == kAppend ? move_through(header, &trouble) : 0;
      // What was not moved is read, to be written here or, after a failure, to be dropped.
      payload_.resize(header.bytes - moved);
      if (!read_exactly(in_, payload_.data(), payload_.size())) break;
      if (trouble == 0 && (moved == 0 || !payload_.empty())) trouble = perform(header);
      // Nobody reads any more once ezpz is gone; what is still in the pipe is written all the same.
      [[maybe_unused]] const ssize_t n = write(acks_, &trouble, sizeof trouble);
    }
    return 0;
  }

 private:
  size_t move_through(const Header& header, int* trouble) {
    const auto found = files_.find(header.file);
    if (found == files_.end() || found->second < 0) return 0;
    // Somebody else may write to the same stdout: splice() takes a file's position without the lock
    // that write() holds, and would write over him.
    if (header.file <= 2 && is_regular(found->second)) return 0;
    if (header.file > 2) lseek(found->second, 0, SEEK_END);  // somebody may have cut it
    return splice_bytes(in_, found->second, header.bytes, trouble);
  }

  int perform(const Header& header) {
    switch (header.op) {
      case kOpen: {
        // Not O_APPEND: the kernel does not splice to such a file.
        const int fd = open(payload_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) return errno;
        files_[header.file] = fd;
        return 0;
      }
      case kAppend:
      case kAppendWhole: {
        const auto found = files_.find(header.file);
        if (found == files_.end()) return EBADF;
        if (header.file > 2) lseek(found->second, 0, SEEK_END);  // somebody may have cut it
        return header.op == kAppend ? append_bytes(found->second, payload_.data(), payload_.size())
                                    : append_whole_bytes(found->second, payload_);
      }
      case kReplace: {
        const size_t end = payload_.find('\0');
        const std::string path = payload_.substr(0, end);
        errno = 0;
        if (write_file_atomically(path, std::string_view(payload_).substr(end + 1)).ok()) return 0;
        return errno != 0 ? errno : EIO;
      }
      case kMakeDirectories:
        errno = 0;
        if (make_directories(payload_).ok()) return 0;
        return errno != 0 ? errno : EIO;
      case kMakeNewDirectory:
        return mkdir(payload_.c_str(), 0777) == 0 ? 0 : errno;
      default:
        return EINVAL;
    }
  }

  int in_;
  int acks_;
  std::string payload_;
  std::map<int, int> files_{{1, 1}, {2, 2}};
};

}  // namespace

// ---- the owner's side: never blocks ----

Scribe::~Scribe() { lose(); }

Status Scribe::start(const char* name, Terminal terminal) {
  Result<Pipe> operations = make_pipe();
  Result<Pipe> answers = make_pipe();
  if (!operations) return operations.error();
  if (!answers) return answers.error();
  fcntl(operations->write.get(), F_SETPIPE_SZ, kPipeBytes);
  const int in = operations->read.get();
  const int acks = answers->write.get();
  std::vector<int> keep{in, acks};
  if (terminal == Terminal::yes) keep.insert(keep.end(), {1, 2});
  const Result<pid_t> pid = fork_helper(name, keep, [in, acks] { return Worker(in, acks).run(); });
  if (!pid) return pid.error();
  pid_ = *pid;
  loop_.on_child(pid_, [](Exit) {});  // reaped; its end shows as the end of the pipe
  to_ = std::move(operations->write);
  from_ = std::move(answers->read);
  set_nonblocking(to_.get());
  set_nonblocking(from_.get());
  loop_.watch_read(from_.get(), [this] { read_acknowledgements(); });
  return success();
}

int Scribe::open_append(const std::string& path, OnDone done) {
  const int file = next_file_++;
  send(kOpen, file, path, std::move(done));
  return file;
}

void Scribe::append(int file, std::string_view bytes, OnDone done) {
  send(kAppend, file, bytes, std::move(done));
}

void Scribe::append_whole(int file, std::string_view bytes, OnDone done) {
  send(kAppendWhole, file, bytes, std::move(done));
}

void Scribe::replace(const std::string& path, std::string_view content, OnDone done) {
  std::string bytes = path;
  bytes += '\0';
  bytes += content;
  send(kReplace, 0, bytes, std::move(done));
}

void Scribe::make_directories(const std::string& path, OnDone done) {
  send(kMakeDirectories, 0, path, std::move(done));
}

void Scribe::make_new_directory(const std::string& path, OnDone done) {
  send(kMakeNewDirectory, 0, path, std::move(done));
}

void Scribe::send(int op, int file, std::string_view bytes, OnDone done) {
  if (!to_) {
    if (done) done(EPIPE);
    return;
  }
  if (waiting_.empty()) moved_s_ = monotonic_s();
  waiting_.push_back({bytes.size(), std::move(done)});
  backlog_bytes_ += bytes.size();

  Header header{static_cast<uint32_t>(op), file, bytes.size()};
  size_t taken = 0;
  if (queue_.empty()) {
    iovec parts[2] = {{&header, sizeof header}, {const_cast<char*>(bytes.data()), bytes.size()}};
    ssize_t n = 0;
    do {
      n = writev(to_.get(), parts, 2);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN) return lose();
    taken = static_cast<size_t>(std::max<ssize_t>(n, 0));
    if (taken == sizeof header + bytes.size()) return;
  }
  std::string rest;
  if (taken < sizeof header) {
    rest.assign(reinterpret_cast<const char*>(&header) + taken, sizeof header - taken);
    rest.append(bytes);
  } else {
    rest.assign(bytes.substr(taken - sizeof header));
  }
  const bool was_empty = queue_.empty();
  queue_.push_back(std::move(rest));
  if (was_empty) loop_.watch_write(to_.get(), [this] { pump(); });
}

void Scribe::pump() {
  while (!queue_.empty()) {
    const std::string& head = queue_.front();
    const ssize_t n =
        write(to_.get(), head.data() + queue_head_offset_, head.size() - queue_head_offset_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return lose();
    moved_s_ = monotonic_s();
    queue_head_offset_ += static_cast<size_t>(n);
    if (queue_head_offset_ == head.size()) {
      queue_.pop_front();
      queue_head_offset_ = 0;
    }
  }
  loop_.unwatch_write(to_.get());
}

void Scribe::read_acknowledgements() {
  int answers[256];
  while (from_) {
    const ssize_t n = read(from_.get(), answers, sizeof answers);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return lose();
    moved_s_ = monotonic_s();
    // An int is written at once and a pipe keeps writes below PIPE_BUF whole.
    for (size_t i = 0; i < static_cast<size_t>(n) / sizeof(int) && !waiting_.empty(); ++i) {
      Waiting done = std::move(waiting_.front());
      waiting_.pop_front();
      backlog_bytes_ -= done.bytes;
      if (done.done) done.done(answers[i]);
    }
  }
  if (on_progress_) {
    const Loop::Callback callback = on_progress_;
    callback();
  }
}

void Scribe::lose() {
  if (to_ && !queue_.empty()) loop_.unwatch_write(to_.get());
  if (from_) loop_.unwatch_read(from_.get());
  to_.reset();
  from_.reset();
  queue_.clear();
  queue_head_offset_ = 0;
  backlog_bytes_ = 0;
  std::deque<Waiting> waiting = std::move(waiting_);
  waiting_.clear();
  for (Waiting& each : waiting) {
    if (each.done) each.done(EPIPE);
  }
}

bool Scribe::settle_while_moving(double patience_s, const std::function<bool()>& give_up) {
  while (!idle() && stuck_for_s() < patience_s && !give_up()) {
    bool expired = false;
    const Loop::TimerId timer =
        loop_.after(patience_s - stuck_for_s() + 0.01, [&expired] { expired = true; });
    loop_.run_until([&] { return idle() || expired || give_up(); });
    loop_.cancel(timer);
  }
  return idle();
}

double Scribe::stuck_for_s() const { return waiting_.empty() ? 0 : monotonic_s() - moved_s_; }

bool Scribe::settle(double at_most_s) {
  auto expired = std::make_shared<bool>(false);
  const Loop::TimerId timer = loop_.after(at_most_s, [expired] { *expired = true; });
  loop_.run_until([this, expired] { return idle() || *expired; });
  loop_.cancel(timer);
  return idle();
}

}  // namespace ezpz::journal
