#include <algorithm>

#include "train/parallel/comm.h"

namespace ezpz::train {
namespace {

class Alone : public Comm {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  void barrier() override {}
  Ticket all_gather(float* full, const float* shard, int64_t elements) override {
    if (full != shard) std::copy_n(shard, elements, full);
    return 0;
  }
  Ticket reduce_scatter_mean(float* shard, const float* full, int64_t elements) override {
    if (full != shard) std::copy_n(full, elements, shard);
    return 0;
  }
  Ticket all_reduce_sum(float* /*data*/, int64_t /*elements*/) override { return 0; }
  Ticket all_reduce_sum(double* /*data*/, int64_t /*elements*/) override { return 0; }
  Ticket all_reduce_max(float* /*data*/, int64_t /*elements*/) override { return 0; }
  Ticket broadcast(float* /*data*/, int64_t /*elements*/, int /*root*/) override { return 0; }
  Ticket send(const float* /*data*/, int64_t /*elements*/, int /*to*/) override { return 0; }
  Ticket receive(float* /*data*/, int64_t /*elements*/, int /*from*/) override { return 0; }
  void wait(Ticket /*ticket*/) override {}
};

}  // namespace

std::unique_ptr<Comm> make_alone() { return std::make_unique<Alone>(); }

}  // namespace ezpz::train
