// What the trainer asks of a group of ranks. Operations that return a Ticket may still be running;
// their buffers belong to them until wait() comes back. Every rank of the group must call the same
// operations in the same order. A peer that is gone, or does not answer in time, makes wait() (or
// the call) throw PeersLost, which only the training loop catches. Readable as C++17.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace ezpz::train {

class PeersLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Comm {
 public:
  using Ticket = int64_t;

  Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  virtual ~Comm() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  virtual void barrier() = 0;
  // full has size() * elements; shard may lie in it, at rank() * elements.
  virtual Ticket all_gather(float* full, const float* shard, int64_t elements) = 0;
  // shard gets the mean over the ranks of their full[rank() * elements ...].
  virtual Ticket reduce_scatter_mean(float* shard, const float* full, int64_t elements) = 0;
  virtual Ticket all_reduce_sum(float* data, int64_t elements) = 0;
  virtual Ticket all_reduce_sum(double* data, int64_t elements) = 0;
  virtual Ticket all_reduce_max(float* data, int64_t elements) = 0;
  virtual Ticket broadcast(float* data, int64_t elements, int root) = 0;
  virtual Ticket send(const float* data, int64_t elements, int to) = 0;
  virtual Ticket receive(float* data, int64_t elements, int from) = 0;
  virtual void wait(Ticket) = 0;
};

// A group of one.
std::unique_ptr<Comm> make_alone();

}  // namespace ezpz::train
