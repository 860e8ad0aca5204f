#include "train/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "train/data/stream_source.h"
#include "train/kernels/simd.h"
#include "train/loop/own_parts.h"

namespace ezpz::train {
namespace {

ModelOptions model_options(const TrainOptions& o) {
  ModelOptions m;
  m.shape = o.shape;
  m.batch = o.batch;
  m.seq = o.seq;
  if (o.recompute == "selective") m.recompute = Recompute::selective;
  if (o.recompute == "full") m.recompute = Recompute::full;
  m.norm_eps = o.norm_eps;
  m.rope_frequencies = o.rope_frequencies;
  m.lora = o.lora;
  if (o.lora.on()) {
    m.lora_scale = static_cast<float>(o.lora_alpha / static_cast<double>(o.lora.rank));
    m.lora_dropout = static_cast<float>(o.lora_dropout);
  }
  m.seed = o.seed;
  return m;
}

OptimizerOptions optimizer_options(const TrainOptions& o) {
  OptimizerOptions p;
  if (o.optimizer == "sgd") p.kind = OptimizerOptions::Kind::sgd;
  p.weight_decay = static_cast<float>(o.weight_decay);
  p.clip = o.clip;
  return p;
}

TensorParallel part_of(const Mesh& mesh) { return {mesh.tensor->rank(), mesh.tensor->size()}; }

std::unique_ptr<Sharded> make_units(const TrainOptions& o, const Mesh& mesh) {
  return std::make_unique<Sharded>(unit_layouts(o.shape, part_of(mesh)), mesh.shard, o.seed,
                                   o.lora.on() ? Training::frozen : Training::on);
}

std::unique_ptr<Sharded> make_adapters(const TrainOptions& o, const Mesh& mesh) {
  if (!o.lora.on()) return nullptr;
  return std::make_unique<Sharded>(adapter_layouts(o.shape, o.lora, part_of(mesh)), mesh.shard,
                                   o.seed);
}

constexpr const char* kMoments[] = {"adam.m/", "adam.v/"};

// What must be the same for the parameters to mean the same.
Json identity(const TrainOptions& o) {
  const auto& s = o.shape;
  Json json{{"dim", s.dim},       {"layers", s.layers},      {"heads", s.heads},
            {"hidden", s.hidden}, {"vocab", s.vocab},        {"kv_heads", s.kv_heads},
            {"tied", s.tied},     {"optimizer", o.optimizer}};
  if (o.lora.on()) {
    json["lora_rank"] = o.lora.rank;
    json["lora_alpha"] = o.lora_alpha;
    json["lora_target"] = o.lora.attention ? (o.lora.feed_forward ? "attn,mlp" : "attn") : "mlp";
    // The adapters belong to these frozen weights.
    json["base"] = o.base_dir.empty() ? "seed " + std::to_string(o.seed) : o.base_dir;
  }
  return json;
}

}  // namespace

// The order in which the model is divided: tensor parallelism cuts the matrices, what it leaves to
// a rank is flattened into units, and each unit is sharded over the ranks of a replica. The
// optimizer sees only the last.
Trainer::Trainer(const TrainOptions& options, const Mesh& mesh, Data data)
    : options_(options),
      mesh_(mesh),
      units_(make_units(options, mesh)),
      adapters_(make_adapters(options, mesh)),
      trained_(adapters_ ? adapters_.get() : units_.get()),
      model_(model_options(options), units_.get(), adapters_.get(), mesh.tensor),
      optimizer_(optimizer_options(options), trained_, mesh.shard, mesh.tensor),
      data_(std::move(data)),
      sample_(static_cast<size_t>(options.seq + 1)),
      tokens_(static_cast<size_t>(options.batch * options.seq)),
      targets_(tokens_.size()) {
  schedule_.lr = options.lr;
  schedule_.min_lr = options.min_lr;
  schedule_.warmup_steps = options.warmup_steps;
  schedule_.steps = options.steps;
  layout_.batch_size = static_cast<uint64_t>(options.batch);
  layout_.grad_accum = static_cast<uint64_t>(options.grad_accum);
  layout_.dp_ranks = static_cast<uint64_t>(mesh.data->size());
  if (data_.stream != nullptr) data_.stream->follow(data_.sampler);
}

int64_t Trainer::tokens_per_step() const {
  return static_cast<int64_t>(layout_.samples_per_step()) * options_.seq;
}

Status Trainer::read_micro_batch(int64_t micro_step) {
  const std::vector<uint64_t> samples = data_.sampler.micro_batch(
      layout_, static_cast<uint64_t>(micro_step), static_cast<uint64_t>(mesh_.data->rank()));
  int64_t at = 0;
  for (const uint64_t sample : samples) {
    const Status read = data_.source->read(sample, sample_.data());
    if (!read) return read;
    const auto narrow = [](int64_t token) { return static_cast<int32_t>(token); };
    std::transform(sample_.begin(), sample_.end() - 1, tokens_.begin() + at, narrow);
    std::transform(sample_.begin() + 1, sample_.end(), targets_.begin() + at, narrow);
    at += options_.seq;
  }
  return success();
}

void Trainer::average_over_replicas() {
  Comm* replicas = mesh_.replicate;
  if (replicas->size() == 1) return;
  for (auto& shard : trained_->shards()) {
    auto* g = shard.gradient.data_ptr<float>();
    replicas->wait(replicas->all_reduce_sum(g, shard.size));
    simd().scale(g, 1.0F / static_cast<float>(replicas->size()), shard.size);
  }
}

Result<StepReport> Trainer::step(bool asked_to_stop) {
  const auto begin = std::chrono::steady_clock::now();
  // Gradients are averaged over ranks as they are reduced; what is left is this rank's share.
  const auto rank_tokens = static_cast<double>(options_.batch * options_.seq * options_.grad_accum);
  double loss = 0;
  units_->begin_step();
  if (adapters_) adapters_->begin_step();
  for (int64_t micro = 0; micro < options_.grad_accum; ++micro) {
    const Status read = read_micro_batch(micro);
    if (!read) return read.error();
    // Which sequence of the whole run it is: the same for any number of ranks.
    const auto first = static_cast<int64_t>(data_.sampler.position()) +
                       (micro * mesh_.data->size() + mesh_.data->rank()) * options_.batch;
    loss += model_.forward_backward(tokens_.data(), targets_.data(),
                                    static_cast<float>(1.0 / rank_tokens), first);
  }
  average_over_replicas();
  double shared[] = {loss / rank_tokens, asked_to_stop ? 1.0 : 0.0};
  mesh_.data->wait(mesh_.data->all_reduce_sum(shared, 2));
  mesh_.tensor->wait(mesh_.tensor->all_reduce_sum(&shared[1], 1));
  StepReport report;
  report.loss = shared[0] / mesh_.data->size();
  report.stop = shared[1] > 0;
  report.lr = schedule_.at(steps_);
  report.gradient_norm = optimizer_.step(report.lr);
  data_.sampler.advance(layout_.samples_per_step());
  report.step = ++steps_;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  report.seconds = took.count();
  return report;
}

std::vector<TensorSpec> Trainer::state_tensors() {
  std::vector<TensorSpec> tensors;
  for (const UnitLayout& unit : trained_->units()) {
    for (const Parameter& p : unit.parameters) {
      std::vector<int64_t> shape{p.whole_rows};
      if (p.whole_columns > 1) shape.push_back(p.whole_columns);
      tensors.push_back({p.name, DType::f32, shape});
      if (!optimizer_.has_moments()) continue;
      for (const char* moment : kMoments) tensors.push_back({moment + p.name, DType::f32, shape});
    }
  }
  return tensors;
}

std::vector<StatePart> Trainer::state_parts() {
  std::vector<StatePart> parts;
  for (const OwnPart& own : own_parts(*trained_)) {
    const Parameter& p = *own.parameter;
    StatePart state;
    state.part.tensor = p.name;
    state.part.first_row = static_cast<uint64_t>(p.first_row);
    state.part.rows = static_cast<uint64_t>(p.rows);
    state.part.first_column = static_cast<uint64_t>(p.first_column);
    state.part.columns = static_cast<uint64_t>(p.columns);
    state.part.first = static_cast<uint64_t>(own.first);
    state.part.count = static_cast<uint64_t>(own.count);
    // What is whole on every tensor parallel rank, or in every replica, is saved once.
    state.written_here =
        (p.split != Split::whole || mesh_.tensor->rank() == 0) && mesh_.replicate->rank() == 0;
    state.data = trained_->shards()[own.unit].parameters.data_ptr<float>() + own.in_shard;
    parts.push_back(state);
    if (!optimizer_.has_moments()) continue;
    const std::array<float*, 2> moments = optimizer_.moments(own.unit);
    for (size_t i = 0; i < moments.size(); ++i) {
      state.part.tensor = kMoments[i] + p.name;
      state.data = moments[i] + own.in_shard;
      parts.push_back(state);
    }
  }
  return parts;
}

std::string Trainer::state() const {
  return dump(Json{{"format", 1},
                   {"model", identity(options_)},
                   {"steps", steps_},
                   {"updates", optimizer_.steps()},
                   {"dataset", options_.dataset},
                   {"sampler", Json::parse(format_sampler_state(data_.sampler.state()))}});
}

Status Trainer::fits(const std::string& state) const {
  const Json json = Json::parse(state, nullptr, false);
  if (!json.is_object() || !json.contains("model") || !json["model"].is_object()) {
    return Error{"not of ezpz-train", "checkpoint", ""};
  }
  const Json here = identity(options_);
  for (const auto& [name, value] : here.items()) {
    const Json there = json["model"].value(name, Json());
    if (there == value) continue;
    return Error{name + " is " + dump(there) + " there and " + dump(value) + " here", "checkpoint",
                 "give the flags that it was made with, or --resume none and another --outdir"};
  }
  if (json["model"].size() != here.size()) {
    return Error{"it is of another kind of training (LoRA or not)", "checkpoint", ""};
  }
  // Other data, or another order of it, is no damage: an older checkpoint would not fit either.
  const Result<SamplerState> sampler = parse_sampler_state(dump(json.value("sampler", Json())));
  if (!sampler) return sampler.error();
  return Sampler(data_.sampler).restore(*sampler);
}

Status Trainer::restore(const std::string& state) {
  const Json json = Json::parse(state, nullptr, false);
  const auto number = [&json](const char* name) -> std::optional<long> {
    if (!json.is_object() || !json.contains(name) || !json[name].is_number_integer()) return {};
    return json[name].get<long>();
  };
  const std::optional<long> steps = number("steps");
  const std::optional<long> updates = number("updates");
  if (!steps || !updates || *steps < 0 || *updates < 0 || !json.contains("sampler")) {
    return Error{"its state cannot be read", "checkpoint", ""};
  }
  const Result<SamplerState> sampler = parse_sampler_state(dump(json["sampler"]));
  if (!sampler) return sampler.error();
  const Status restored = data_.sampler.restore(*sampler);
  if (!restored) return restored;
  steps_ = *steps;
  optimizer_.resume_at(*updates);
  if (data_.stream != nullptr) data_.stream->follow(data_.sampler);
  return success();
}

}  // namespace ezpz::train
