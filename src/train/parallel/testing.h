// Ranks as threads of a test, and the mistakes that a parallel trainer makes, planted.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "train/kernels/gemm.h"
#include "train/parallel/comm.h"

namespace ezpz::train::testing {

enum class Planted { nothing, sum_for_mean, skipped_all_reduce, own_part_only };

// Where the threads meet: each shows a pointer, all look, all go on.
class Hub {
 public:
  explicit Hub(int size) : shown_(static_cast<size_t>(size)) {}
  void meet() {
    std::unique_lock lock(mutex_);
    const long turn = turn_;
    if (++arrived_ == shown_.size()) {
      arrived_ = 0;
      ++turn_;
      all_.notify_all();
      return;
    }
    all_.wait(lock, [&] { return turn_ != turn; });
  }
  std::vector<const void*>& shown() { return shown_; }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<const void*> shown_;
  size_t arrived_ = 0;
  long turn_ = 0;
};

class ThreadComm : public Comm {
 public:
  ThreadComm(Hub* hub, int rank, Planted planted) : hub_(hub), rank_(rank), planted_(planted) {}
  [[nodiscard]] Hub* hub() const { return hub_; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(hub_->shown().size()); }
  void barrier() override { hub_->meet(); }

  Ticket all_gather(float* full, const float* shard, int64_t elements) override {
    exchange(shard, [&](int r, const float* theirs) {
      std::copy_n(theirs, elements, full + r * elements);
    });
    return 0;
  }
  Ticket reduce_scatter_mean(float* shard, const float* full, int64_t elements) override {
    std::vector<float> sum(static_cast<size_t>(elements));
    exchange(full, [&](int r, const float* theirs) {
      if (planted_ == Planted::own_part_only && r != rank_) return;
      for (int64_t i = 0; i < elements; ++i) {
        sum[static_cast<size_t>(i)] += theirs[rank_ * elements + i];
      }
    });
    const bool mean = planted_ == Planted::nothing || planted_ == Planted::skipped_all_reduce;
    for (int64_t i = 0; i < elements; ++i) {
      shard[i] = sum[static_cast<size_t>(i)] / (mean ? static_cast<float>(size()) : 1.0F);
    }
    return 0;
  }
  Ticket all_reduce_sum(float* data, int64_t elements) override { return sum(data, elements); }
  Ticket all_reduce_sum(double* data, int64_t elements) override { return sum(data, elements); }
  Ticket all_reduce_max(float* data, int64_t elements) override {
    std::vector<float> top(data, data + elements);
    exchange(data, [&](int /*r*/, const float* theirs) {
      for (int64_t i = 0; i < elements; ++i) {
        top[static_cast<size_t>(i)] = std::max(top[static_cast<size_t>(i)], theirs[i]);
      }
    });
    std::copy(top.begin(), top.end(), data);
    return 0;
  }
  Ticket broadcast(float* data, int64_t elements, int root) override {
    exchange(data, [&](int r, const float* theirs) {
      if (r == root && r != rank_) std::copy_n(theirs, elements, data);
    });
    return 0;
  }
  Ticket send(const float* /*data*/, int64_t /*elements*/, int /*to*/) override { std::abort(); }
  Ticket receive(float* /*data*/, int64_t /*elements*/, int /*from*/) override { std::abort(); }
  void wait(Ticket /*ticket*/) override {}

 private:
  template <class T, class F>
  void exchange(const T* mine, F&& look) {
    hub_->shown()[static_cast<size_t>(rank_)] = mine;
    hub_->meet();
    for (int r = 0; r < size(); ++r) {
      look(r, static_cast<const T*>(hub_->shown()[static_cast<size_t>(r)]));
    }
    hub_->meet();
  }
  template <class T>
  Ticket sum(T* data, int64_t elements) {
    std::vector<T> total(static_cast<size_t>(elements));
    exchange(data, [&](int r, const T* theirs) {
      if (planted_ == Planted::skipped_all_reduce && r != rank_) return;
      for (int64_t i = 0; i < elements; ++i) total[static_cast<size_t>(i)] += theirs[i];
    });
    hub_->meet();
    std::copy(total.begin(), total.end(), data);
    return 0;
  }

  Hub* hub_;
  int rank_;
  Planted planted_;
};

// Runs body on so many ranks, a thread each with one thread of arithmetic.
inline void on_ranks(int ranks, Planted planted, const std::function<void(Comm*)>& body) {
  Hub hub(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      set_threads(1);
      ThreadComm comm(&hub, r, planted);
      body(&comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A mesh of data x tensor ranks; the mistake is planted in both kinds of groups.
inline void on_mesh(int data, int tensor, Planted planted,
                    const std::function<void(Comm* data, Comm* tensor)>& body) {
  std::vector<std::unique_ptr<Hub>> data_hubs, tensor_hubs;
  for (int t = 0; t < tensor; ++t) data_hubs.push_back(std::make_unique<Hub>(data));
  for (int d = 0; d < data; ++d) tensor_hubs.push_back(std::make_unique<Hub>(tensor));
  std::vector<std::thread> threads;
  for (int d = 0; d < data; ++d) {
    for (int t = 0; t < tensor; ++t) {
      threads.emplace_back([&, d, t] {
        set_threads(1);
        ThreadComm data_comm(data_hubs[static_cast<size_t>(t)].get(), d, planted);
        ThreadComm tensor_comm(tensor_hubs[static_cast<size_t>(d)].get(), t, planted);
        body(&data_comm, &tensor_comm);
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ezpz::train::testing
