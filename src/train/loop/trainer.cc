#include "train/loop/trainer.h"

#include <algorithm>
#include <chrono>

namespace ezpz::train {
namespace {

ModelOptions model_options(const TrainOptions& o) {
  ModelOptions m;
  m.shape = o.shape;
  m.batch = o.batch;
  m.seq = o.seq;
  if (o.recompute == "selective") m.recompute = Recompute::selective;
  if (o.recompute == "full") m.recompute = Recompute::full;
  return m;
}

OptimizerOptions optimizer_options(const TrainOptions& o) {
  OptimizerOptions p;
  if (o.optimizer == "sgd") p.kind = OptimizerOptions::Kind::sgd;
  p.weight_decay = static_cast<float>(o.weight_decay);
  p.clip = o.clip;
  return p;
}

}  // namespace

// The order in which the model is divided: tensor parallelism cuts the matrices, what it leaves to
// a rank is flattened into units, and each unit is sharded over the data-parallel ranks. The
// optimizer sees only the last.
Trainer::Trainer(const TrainOptions& options, Comm* data, Comm* tensor)
    : options_(options),
      comm_(data),
      tp_(tensor),
      units_(unit_layouts(options.shape, {tensor->rank(), tensor->size()}), data, options.seed),
      model_(model_options(options), &units_, tensor),
      optimizer_(optimizer_options(options), &units_, data, tensor),
      data_(make_synthetic(options.dataset, options.seed, options.shape.vocab)),
      sample_(static_cast<size_t>(options.seq + 1)),
      tokens_(static_cast<size_t>(options.batch * options.seq)),
      targets_(tokens_.size()) {
  schedule_.lr = options.lr;
  schedule_.min_lr = options.min_lr;
  schedule_.warmup_steps = options.warmup_steps;
  schedule_.steps = options.steps;
}

int64_t Trainer::tokens_per_step() const {
  return options_.batch * options_.seq * options_.grad_accum * comm_->size();
}

// Samples are dealt in the order of steps, micro-steps and ranks: which samples make a step does
// not depend on how many ranks share them, as long as the global batch is the same.
void Trainer::read_micro_batch(int64_t micro_step) {
  const int64_t turn = steps_ * options_.grad_accum + micro_step;
  const int64_t first = (turn * comm_->size() + comm_->rank()) * options_.batch;
  for (int64_t b = 0; b < options_.batch; ++b) {
    data_->read(first + b, options_.seq, sample_.data());
    std::copy_n(sample_.begin(), options_.seq, tokens_.begin() + b * options_.seq);
    std::copy_n(sample_.begin() + 1, options_.seq, targets_.begin() + b * options_.seq);
  }
}

StepReport Trainer::step(bool asked_to_stop) {
  const auto begin = std::chrono::steady_clock::now();
  // Gradients are averaged over ranks as they are reduced; what is left is this rank's share.
  const auto rank_tokens = static_cast<double>(options_.batch * options_.seq * options_.grad_accum);
  double loss = 0;
  units_.begin_step();
  for (int64_t micro = 0; micro < options_.grad_accum; ++micro) {
    read_micro_batch(micro);
    loss += model_.forward_backward(tokens_.data(), targets_.data(),
                                    static_cast<float>(1.0 / rank_tokens));
  }
  double shared[] = {loss / rank_tokens, asked_to_stop ? 1.0 : 0.0};
  comm_->wait(comm_->all_reduce_sum(shared, 2));
  tp_->wait(tp_->all_reduce_sum(&shared[1], 1));
  StepReport report;
  report.loss = shared[0] / comm_->size();
  report.stop = shared[1] > 0;
  report.lr = schedule_.at(steps_);
  report.gradient_norm = optimizer_.step(report.lr);
  report.step = ++steps_;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  report.seconds = took.count();
  return report;
}

}  // namespace ezpz::train
