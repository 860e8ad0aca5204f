#include "train/parallel/gloo.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <stdlib.h>

#include <chrono>
#include <functional>
#include <map>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "base/text.h"
#include "train/kernels/simd.h"

namespace ezpz::train {
namespace {

using WorkPtr = decltype(std::declval<c10d::ProcessGroupGloo>().barrier());

// PyTorch's errors are several lines with a stack of calls; the first says what it was.
std::string first_line(const std::string& text) {
  return printable(text.substr(0, text.find('\n')), 300);
}

at::Tensor view(const float* data, int64_t elements) {
  return at::from_blob(const_cast<float*>(data), {elements},
                       at::kFloat);  // NOLINT: PyTorch's habit
}

// Runs what may lose a peer, and says so in our own words.
template <class F>
auto guarded(const char* what, F&& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    throw PeersLost(std::string(what) + ": " + first_line(e.what()));
  }
}

class Gloo : public Comm {
 public:
  // rank of size ranks of a group that has the store to itself.
  Gloo(const Place& place, c10::intrusive_ptr<c10d::Store> store, int rank, int size,
       const GlooLimits& limits)
      : rank_(rank),
        size_(size),
        limit_(std::chrono::seconds(limits.collective_s)),
        store_(std::move(store)) {
    guarded("connecting to the peers", [&] {
      auto options =
          c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(limits.connect_s));
      options->devices.push_back(device_for(place));
      options->threads = 2;
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, rank_, size_, options);
    });
    barrier();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void barrier() override {
    // Of gloo's own barrier a dead peer is not seen before its time limit; of a sum it is.
    double nothing = 0;
    wait(all_reduce_sum(&nothing, 1));
  }

  Ticket all_gather(float* full, const float* shard, int64_t elements) override {
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int64_t r = 0; r < size_; ++r) outputs[0].push_back(view(full + r * elements, elements));
    std::vector<at::Tensor> inputs{view(shard, elements)};
    return start("all-gather", [&] {
      c10d::AllgatherOptions options;
      options.timeout = limit_;
      return group_->allgather(outputs, inputs, options);
    });
  }

  // Every rank sends each other its part, and each adds up what it got, in the order of ranks.
  Ticket reduce_scatter_mean(float* shard, const float* full, int64_t elements) override {
    at::Tensor parts = scratch(elements * size_);
    at::Tensor input = view(full, elements * size_);
    std::vector<int64_t> even;
    const Ticket ticket = start("reduce-scatter", [&] {
      c10d::AllToAllOptions options;
      options.timeout = limit_;
      return group_->alltoall_base(parts, input, even, even, options);
    });
    pending_[ticket].finish = [this, shard, parts, elements] {
      const auto* from = parts.data_ptr<float>();
      std::copy_n(from, elements, shard);
      for (int64_t r = 1; r < size_; ++r) simd().add(shard, from + r * elements, elements);
      simd().scale(shard, 1.0F / static_cast<float>(size_), elements);
      free_.push_back(parts);
    };
    return ticket;
  }

  Ticket all_reduce_sum(float* data, int64_t elements) override {
    return all_reduce(view(data, elements), c10d::ReduceOp::SUM);
  }
  Ticket all_reduce_sum(double* data, int64_t elements) override {
    return all_reduce(at::from_blob(data, {elements}, at::kDouble), c10d::ReduceOp::SUM);
  }
  Ticket all_reduce_max(float* data, int64_t elements) override {
    return all_reduce(view(data, elements), c10d::ReduceOp::MAX);
  }

  Ticket broadcast(float* data, int64_t elements, int root) override {
    std::vector<at::Tensor> tensors{view(data, elements)};
    return start("broadcast", [&] {
      c10d::BroadcastOptions options;
      options.rootRank = root;
      options.timeout = limit_;
      return group_->broadcast(tensors, options);
    });
  }

  Ticket send(const float* data, int64_t elements, int to) override {
    std::vector<at::Tensor> tensors{view(data, elements)};
    return start("send", [&] { return group_->send(tensors, to, 0); });
  }
  Ticket receive(float* data, int64_t elements, int from) override {
    std::vector<at::Tensor> tensors{view(data, elements)};
    return start("receive", [&] { return group_->recv(tensors, from, 0); });
  }

  void wait(Ticket ticket) override {
    const auto found = pending_.find(ticket);
    if (found == pending_.end()) return;
    Pending pending = std::move(found->second);
    pending_.erase(found);
    guarded(pending.what, [&] { pending.work->wait(limit_); });
    if (pending.finish) pending.finish();
  }

 private:
  struct Pending {
    const char* what = "";
    WorkPtr work;
    std::function<void()> finish;
  };

  // Ranks that all are on one machine meet at its loopback address and need no other.
  static std::shared_ptr<::gloo::transport::Device> device_for(const Place& place) {
    if (const char* interface = getenv("GLOO_SOCKET_IFNAME");
        interface != nullptr && *interface != 0) {
      return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
    }
    if (place.master_addr == "127.0.0.1" || place.master_addr == "localhost") {
      return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
    }
    return c10d::ProcessGroupGloo::createDefaultDevice();
  }

  template <class F>
  Ticket start(const char* what, F&& f) {
    Pending pending;
    pending.what = what;
    pending.work = guarded(what, std::forward<F>(f));
    pending_[++last_] = std::move(pending);
    return last_;
  }

  Ticket all_reduce(const at::Tensor& tensor, c10d::ReduceOp::RedOpType op) {
    std::vector<at::Tensor> tensors{tensor};
    return start("all-reduce", [&] {
      c10d::AllreduceOptions options;
      options.reduceOp = op;
      options.timeout = limit_;
      return group_->allreduce(tensors, options);
    });
  }

  at::Tensor scratch(int64_t elements) {
    for (size_t i = 0; i < free_.size(); ++i) {
      if (free_[i].numel() != elements) continue;
      at::Tensor found = free_[i];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
    return at::empty({elements}, at::kFloat);
  }

  int rank_;
  int size_;
  std::chrono::milliseconds limit_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::map<Ticket, Pending> pending_;
  std::vector<at::Tensor> free_;  // what reductions have received into
  Ticket last_ = 0;
};

}  // namespace

std::string division_trouble(int ranks, const Division& d) {
  const auto does_not_divide = [](int part, int whole, const char* flag) {
    return std::to_string(whole) + " ranks do not divide into groups of " + std::to_string(part) +
           ": " + flag;
  };
  if (ranks % d.tensor != 0) return does_not_divide(d.tensor, ranks, "--tp");
  const int data = ranks / d.tensor;
  if (d.shard > 0 && data % d.shard != 0) return does_not_divide(d.shard, data, "--dp-shard");
  return "";
}

Groups alone_groups() {
  return {make_alone(), make_alone(), nullptr, make_alone(), make_alone(), make_alone()};
}

Groups make_gloo(const Place& place, const Division& division, const GlooLimits& limits) {
  c10::intrusive_ptr<c10d::Store> store;
  const std::string meeting = place.master_addr + ":" + std::to_string(place.master_port);
  guarded(("meeting at " + printable(meeting, 80)).c_str(), [&] {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place.master_port);
    options.isServer = place.rank == 0;
    options.numWorkers = static_cast<size_t>(place.world);
    options.timeout = std::chrono::seconds(limits.connect_s);
    store = c10::make_intrusive<c10d::TCPStore>(place.master_addr, options);
  });
  const auto group = [&](const std::string& name, int rank, int size,
                         int answer_s = 0) -> std::unique_ptr<Comm> {
    if (size == 1) return make_alone();
    GlooLimits its = limits;
    if (answer_s > 0) its.collective_s = answer_s;
    return std::make_unique<Gloo>(place, c10::make_intrusive<c10d::PrefixStore>(name, store), rank,
                                  size, its);
  };
  const int tp = division.tensor;
  const int data = place.world / tp;
  const int sharing = division.shard > 0 ? division.shard : data;
  const int in_tensor = place.rank % tp;
  const int in_data = place.rank / tp;
  const auto named = [](const char* kind, int a, int b) {
    return std::string(kind) + " " + std::to_string(a) + " " + std::to_string(b);
  };
  Groups groups;
  groups.world = group("world", place.rank, place.world, limits.disk_s);
  groups.data = group(named("data", in_tensor, 0), in_data, data);
  if (sharing != data) {
    groups.shard = group(named("shard", in_tensor, in_data / sharing), in_data % sharing, sharing);
  }
  groups.replicate =
      group(named("replicate", in_tensor, in_data % sharing), in_data / sharing, data / sharing);
  groups.tensor = group(named("tensor", in_data, 0), in_tensor, tp);
  groups.saver = group("saver", place.rank, place.world, limits.disk_s);
  return groups;
}

}  // namespace ezpz::train
