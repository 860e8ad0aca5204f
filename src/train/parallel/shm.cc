#include "train/parallel/shm.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "train/kernels/random.h"
#include "train/kernels/simd.h"

namespace ezpz::train {
namespace {

using Clock = std::chrono::steady_clock;

// A rank's window, of which there are two that take turns: while one is read the other is filled,
// so that one meeting a chunk suffices. Small enough to be in a cache when the peer reads it.
constexpr int64_t kWindowBytes = 1 << 20;
constexpr int64_t kWindows = 2;
constexpr int kSpins = 2000;
constexpr long kLookNs = 2'000'000;  // between looks at whether the peers live

// At the head of the file: how often each rank has arrived, each on a cache line of its own.
struct alignas(64) Arrivals {
  std::atomic<uint32_t> count;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

int64_t head_bytes(int ranks) {
  return (static_cast<int64_t>(sizeof(Arrivals)) * ranks + 4095) / 4096 * 4096;
}
int64_t file_bytes(int ranks) { return head_bytes(ranks) + ranks * kWindows * kWindowBytes; }

void futex_wait(std::atomic<uint32_t>* word, uint32_t seen) {
  const timespec limit{0, kLookNs};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

struct flock byte_lock(short type, int rank) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

class Shm : public Comm {
 public:
  Shm(int fd, void* memory, int rank, int ranks, ShmLimits limits)
      : fd_(fd), memory_(static_cast<char*>(memory)), rank_(rank), ranks_(ranks), limits_(limits) {}
  ~Shm() override {
    munmap(memory_, static_cast<size_t>(file_bytes(ranks_)));
    close(fd_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return ranks_; }
  void barrier() override { meet(); }

  Ticket all_gather(float* full, const float* shard, int64_t elements) override {
    constexpr int64_t kChunk = kWindowBytes / sizeof(float);
    for (int64_t at = 0; at < elements; at += kChunk) {
      const int64_t n = std::min(kChunk, elements - at);
      std::copy_n(shard + at, n, window<float>(rank_));
      meet();
      for (int64_t i = 1; i < ranks_; ++i) {
        const auto r = static_cast<int>((rank_ + i) % ranks_);  // not all from the same one
        std::copy_n(window<float>(r), n, full + r * elements + at);
      }
      float* own = full + rank_ * elements + at;
      if (own != shard + at) std::copy_n(shard + at, n, own);
      turn();
    }
    return 0;
  }

  Ticket reduce_scatter_mean(float* shard, const float* full, int64_t elements) override {
    const int64_t chunk = kWindowBytes / static_cast<int64_t>(sizeof(float)) / ranks_;
    for (int64_t at = 0; at < elements; at += chunk) {
      const int64_t n = std::min(chunk, elements - at);
      for (int64_t r = 0; r < ranks_; ++r) {
        std::copy_n(full + r * elements + at, n, window<float>(rank_) + r * chunk);
      }
      meet();
      // In the order of ranks: the sum must not depend on which rank adds.
      std::copy_n(window<float>(0) + rank_ * chunk, n, shard + at);
      for (int r = 1; r < ranks_; ++r) {
        simd().add(shard + at, window<float>(r) + rank_ * chunk, n);
      }
      simd().scale(shard + at, 1.0F / static_cast<float>(ranks_), n);
      turn();
    }
    return 0;
  }

  Ticket all_reduce_sum(float* data, int64_t elements) override {
    return reduce(data, elements, [](float a, float b) { return a + b; });
  }
  Ticket all_reduce_sum(double* data, int64_t elements) override {
    return reduce(data, elements, [](double a, double b) { return a + b; });
  }
  Ticket all_reduce_max(float* data, int64_t elements) override {
    return reduce(data, elements, [](float a, float b) { return std::max(a, b); });
  }

  Ticket broadcast(float* data, int64_t elements, int root) override {
    constexpr int64_t kChunk = kWindowBytes / sizeof(float);
    for (int64_t at = 0; at < elements; at += kChunk) {
      const int64_t n = std::min(kChunk, elements - at);
      if (rank_ == root) std::copy_n(data + at, n, window<float>(root));
      meet();
      if (rank_ != root) std::copy_n(window<float>(root), n, data + at);
      turn();
    }
    return 0;
  }

  // Between two ranks there is nothing here: over_shm() sends these elsewhere.
  Ticket send(const float* /*data*/, int64_t /*elements*/, int /*to*/) override {
    throw PeersLost("send: not through shared memory");
  }
  Ticket receive(float* /*data*/, int64_t /*elements*/, int /*from*/) override {
    throw PeersLost("receive: not through shared memory");
  }
  void wait(Ticket /*ticket*/) override {}

 private:
  template <class T, class F>
  Ticket reduce(T* data, int64_t elements, F&& combine) {
    constexpr int64_t kChunk = kWindowBytes / sizeof(T);
    for (int64_t at = 0; at < elements; at += kChunk) {
      const int64_t n = std::min(kChunk, elements - at);
      std::copy_n(data + at, n, window<T>(rank_));
      meet();
      std::copy_n(window<T>(0), n, data + at);
      for (int r = 1; r < ranks_; ++r) {
        const T* theirs = window<T>(r);
        for (int64_t i = 0; i < n; ++i) data[at + i] = combine(data[at + i], theirs[i]);
      }
      turn();
    }
    return 0;
  }

  Arrivals& arrivals(int rank) { return reinterpret_cast<Arrivals*>(memory_)[rank]; }
  template <class T>
  T* window(int rank) {
    return reinterpret_cast<T*>(memory_ + head_bytes(ranks_) +
                                (rank * kWindows + window_) * kWindowBytes);
  }
  void turn() { window_ = (window_ + 1) % kWindows; }

  // All ranks have come so far.
  void meet() {
    ++meetings_;
    arrivals(rank_).count.store(meetings_, std::memory_order_release);
    futex_wake(&arrivals(rank_).count);
    for (int r = 0; r < ranks_; ++r) {
      if (r != rank_) await(r);
    }
  }

  void await(int peer) {
    std::atomic<uint32_t>& count = arrivals(peer).count;
    Clock::time_point begin;
    for (int tries = 0;; ++tries) {
      const uint32_t seen = count.load(std::memory_order_acquire);
      if (static_cast<int32_t>(seen - meetings_) >= 0) return;
      if (tries < kSpins) continue;
      if (tries == kSpins) begin = Clock::now();
      futex_wait(&count, seen);
      // It may have come and gone between the look and now.
      if (static_cast<int32_t>(count.load(std::memory_order_acquire) - meetings_) >= 0) return;
      const std::chrono::duration<double> waited = Clock::now() - begin;
      if (!lives(peer)) {
        throw PeersLost("shared memory: rank " + std::to_string(peer) + " is dead");
      }
      if (waited.count() > limits_.answer_s) {
        throw PeersLost("shared memory: rank " + std::to_string(peer) +
                        " lives and has not come in " +
                        std::to_string(static_cast<long>(limits_.answer_s)) + " s");
      }
    }
  }

  [[nodiscard]] bool lives(int peer) const {
    struct flock lock = byte_lock(F_WRLCK, peer);
    return fcntl(fd_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  }

  int fd_;
  char* memory_;
  int rank_;
  int ranks_;
  ShmLimits limits_;
  uint32_t meetings_ = 0;
  int64_t window_ = 0;
};

// Shared memory for collectives, the group it came from for the rest.
class Both : public Comm {
 public:
  Both(std::unique_ptr<Comm> group, std::unique_ptr<Comm> shm)
      : group_(std::move(group)), shm_(std::move(shm)) {}
  [[nodiscard]] int rank() const override { return shm_->rank(); }
  [[nodiscard]] int size() const override { return shm_->size(); }
  void barrier() override { shm_->barrier(); }
  Ticket all_gather(float* full, const float* shard, int64_t n) override {
    return shm_->all_gather(full, shard, n);
  }
  Ticket reduce_scatter_mean(float* shard, const float* full, int64_t n) override {
    return shm_->reduce_scatter_mean(shard, full, n);
  }
  Ticket all_reduce_sum(float* data, int64_t n) override { return shm_->all_reduce_sum(data, n); }
  Ticket all_reduce_sum(double* data, int64_t n) override { return shm_->all_reduce_sum(data, n); }
  Ticket all_reduce_max(float* data, int64_t n) override { return shm_->all_reduce_max(data, n); }
  Ticket broadcast(float* data, int64_t n, int root) override {
    return shm_->broadcast(data, n, root);
  }
  Ticket send(const float* data, int64_t n, int to) override { return group_->send(data, n, to); }
  Ticket receive(float* data, int64_t n, int from) override {
    return group_->receive(data, n, from);
  }
  // Tickets of shared memory are 0: done.
  void wait(Ticket ticket) override {
    if (ticket != 0) group_->wait(ticket);
  }

 private:
  std::unique_ptr<Comm> group_;
  std::unique_ptr<Comm> shm_;
};

// A whole number that a double holds exactly.
double as_double(uint64_t bits) { return static_cast<double>(bits >> 12); }

}  // namespace

bool create_shm_file(const std::string& path, int ranks) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  // Taken now: a full /dev/shm would otherwise be a SIGBUS in the middle of a step.
  const bool made = posix_fallocate(fd, 0, file_bytes(ranks)) == 0;
  close(fd);
  if (!made) unlink(path.c_str());
  return made;
}

std::unique_ptr<Comm> open_shm(const std::string& path, int rank, int ranks,
                               const ShmLimits& limits) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat status {};
  struct flock lock = byte_lock(F_WRLCK, rank);
  if (fstat(fd, &status) != 0 || status.st_size != file_bytes(ranks) ||
      fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    close(fd);
    return nullptr;
  }
  void* memory = mmap(nullptr, static_cast<size_t>(file_bytes(ranks)), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    close(fd);
    return nullptr;
  }
  return std::make_unique<Shm>(fd, memory, rank, ranks, limits);
}

std::unique_ptr<Comm> over_shm(std::unique_ptr<Comm> group, const std::string& node_identity) {
  const int rank = group->rank();
  const int ranks = group->size();
  if (ranks == 1) return group;
  // Everybody's identity, and rank 0's choice of a name.
  std::vector<double> told(static_cast<size_t>(ranks) + 1);
  told[static_cast<size_t>(rank)] = as_double(stream_key(0, node_identity));
  if (rank == 0) {
    uint64_t name = 0;
    if (getrandom(&name, sizeof name, 0) == sizeof name) told.back() = as_double(name);
  }
  group->wait(group->all_reduce_sum(told.data(), ranks + 1));
  if (std::any_of(told.begin() + 1, told.end() - 1, [&](double d) { return d != told[0]; })) {
    return group;
  }
  const std::string path =
      "/dev/shm/ezpz-train-" + std::to_string(static_cast<uint64_t>(told.back()));
  // A name without a file is as good as none.
  double ready = rank != 0 || create_shm_file(path, ranks) ? 1 : 0;
  group->wait(group->all_reduce_sum(&ready, 1));
  std::unique_ptr<Comm> shm = open_shm(path, rank, ranks);
  double opened = shm != nullptr ? 1 : 0;
  group->wait(group->all_reduce_sum(&opened, 1));
  if (rank == 0) unlink(path.c_str());
  if (opened != ranks) return group;
  return std::make_unique<Both>(std::move(group), std::move(shm));
}

}  // namespace ezpz::train
