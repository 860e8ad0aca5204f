#include "train/optim/optimizer.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "train/kernels/simd.h"

namespace ezpz::train {

Optimizer::Optimizer(const OptimizerOptions& options, Sharded* units, Comm* comm, Comm* tp)
    : options_(options), units_(units), comm_(comm), tp_(tp) {
  find_segments();
  if (options_.kind == OptimizerOptions::Kind::sgd) return;
  for (const auto& shard : units_->shards()) {
    m_.push_back(at::zeros({shard.size}, at::kFloat));
    v_.push_back(at::zeros({shard.size}, at::kFloat));
  }
}

// A parameter may lie across several ranks' parts; neighbours that decay alike are one segment.
void Optimizer::find_segments() {
  for (size_t u = 0; u < units_->units().size(); ++u) {
    const auto& shard = units_->shards()[u];
    for (const Parameter& p : units_->units()[u].parameters) {
      const int64_t from = std::max(p.offset, shard.begin);
      const int64_t to = std::min(p.offset + p.elements(), shard.begin + shard.size);
      if (from >= to) continue;
      const Segment next{u,       from - shard.begin,      to - from,
                         p.decay, p.split != Split::whole, p.partial_gradient};
      Segment* last = segments_.empty() ? nullptr : &segments_.back();
      if (last != nullptr && last->unit == u && last->decay == p.decay &&
          last->divided == next.divided && last->partial == next.partial &&
          last->begin + last->size == next.begin) {
        last->size += next.size;
      } else {
        segments_.push_back(next);
      }
    }
  }
}

// Of the whole model: what every tensor parallel rank holds alike counts once.
double Optimizer::gradient_norm() {
  double divided = 0;
  double whole = 0;
  for (const Segment& segment : segments_) {
    const auto* g = units_->shards()[segment.unit].gradient.data_ptr<float>() + segment.begin;
    (segment.divided ? divided : whole) += simd().square_sum(g, segment.size);
  }
  tp_->wait(tp_->all_reduce_sum(&divided, 1));
  double squares = divided + whole;
  comm_->wait(comm_->all_reduce_sum(&squares, 1));
  return std::sqrt(squares);
}

void Optimizer::complete_partial_gradients() {
  for (const Segment& segment : segments_) {
    if (!segment.partial) continue;
    auto* g = units_->shards()[segment.unit].gradient.data_ptr<float>() + segment.begin;
    tp_->wait(tp_->all_reduce_sum(g, segment.size));
  }
}

double Optimizer::step(double lr) {
  complete_partial_gradients();
  const double norm = gradient_norm();
  ++steps_;
  AdamStep step;
  step.lr = static_cast<float>(lr);
  step.beta1 = options_.beta1;
  step.beta2 = options_.beta2;
  step.eps = options_.eps;
  step.correction1 =
      static_cast<float>(1.0 - std::pow(static_cast<double>(options_.beta1), steps_));
  step.correction2 =
      static_cast<float>(1.0 - std::pow(static_cast<double>(options_.beta2), steps_));
  if (options_.clip > 0 && norm > options_.clip) {
    step.gradient_scale = static_cast<float>(options_.clip / norm);
  }
  for (const Segment& segment : segments_) {
    auto& shard = units_->shards()[segment.unit];
    float* p = shard.parameters.data_ptr<float>() + segment.begin;
    const float* g = shard.gradient.data_ptr<float>() + segment.begin;
    if (options_.kind == OptimizerOptions::Kind::sgd) {
      simd().add_scaled(p, g, -step.lr * step.gradient_scale, segment.size);
      continue;
    }
    step.decay = segment.decay ? options_.weight_decay : 0;
    simd().adamw(p, m_[segment.unit].data_ptr<float>() + segment.begin,
                 v_[segment.unit].data_ptr<float>() + segment.begin, g, segment.size, step);
  }
  return norm;
}

}  // namespace ezpz::train
