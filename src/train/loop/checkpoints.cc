#include "train/loop/checkpoints.h"

#include <fmt/core.h>

#include <cstring>
#include <mutex>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/load.h"

namespace ezpz::train {
namespace {

constexpr double kLastSaveAtMostS = 3600;

// Any bytes, as the floats that groups send.
Result<std::string> text_from_rank_0(Comm* group, const std::string& mine) {
  try {
    double length = group->rank() == 0 ? static_cast<double>(mine.size()) : 0;
    group->wait(group->all_reduce_sum(&length, 1));
    const auto bytes = static_cast<size_t>(length);
    std::vector<float> packed((bytes + sizeof(float) - 1) / sizeof(float));
    if (packed.empty()) return std::string();
    if (group->rank() == 0) std::memcpy(packed.data(), mine.data(), bytes);
    group->wait(group->broadcast(packed.data(), static_cast<int64_t>(packed.size()), 0));
    std::string text(bytes, '\0');
    std::memcpy(text.data(), packed.data(), bytes);
    return text;
  } catch (const PeersLost& lost) {
    return Error{lost.what(), "a checkpoint", ""};
  }
}

bool all_agree_over(Comm* group, bool mine) {
  try {
    double against = mine ? 0 : 1;
    group->wait(group->all_reduce_sum(&against, 1));
    return against == 0;
  } catch (const PeersLost&) {
    return false;
  }
}

std::string root_of(const std::string& outdir) { return outdir + "/checkpoints"; }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Ranks ranks_over(Comm* group) {
  Ranks ranks;
  ranks.rank = group->rank();
  ranks.world_size = group->size();
  ranks.all_agree = [group](bool mine) { return all_agree_over(group, mine); };
  ranks.from_rank_0 = [group](const std::string& text) { return text_from_rank_0(group, text); };
  return ranks;
}

struct Checkpoints::Shared {
  std::mutex mutex;
  std::string last;
};

Checkpoints::Checkpoints(const TrainOptions& options, Comm* group, Comm* saver, Trainer* trainer,
                         Faults* faults, std::function<void(const std::string&)> say)
    : options_(options),
      ranks_(ranks_over(group)),
      trainer_(trainer),
      faults_(faults),
      say_(std::move(say)),
      shared_(std::make_unique<Shared>()) {
  if (options_.outdir.empty()) return;
  save_options_.root = root_of(options_.outdir);
  save_options_.keep = options_.keep;
  save_options_.disk = faults_->disk();
  save_options_.warn = [](const std::string& text) { log::warning(text); };
  if (!options_.async_save) return;
  saver_ = std::make_unique<AsyncSaver>(save_options_, ranks_over(saver),
                                        [this](const std::string& dir) { announce(dir); });
}

Checkpoints::~Checkpoints() = default;

void Checkpoints::announce(const std::string& dir) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->last = dir;
  }
  const std::optional<int64_t> step = parse_step_name(base_name(dir));
  say_(fmt::format("step={} checkpoint={} saved", step.value_or(0), printable(dir, 1000)));
}

std::string Checkpoints::last() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->last;
}

Result<std::optional<std::string>> Checkpoints::resume() {
  const bool automatic = options_.resume == "auto";
  if (!save_options_.root.empty()) {
    if (ranks_.rank == 0) clean_leftovers(save_options_.root);
    if (!ranks_.all_agree(true)) throw PeersLost("before a checkpoint was looked for");
  }
  if (options_.resume == "none" || (automatic && options_.outdir.empty())) {
    return std::optional<std::string>();
  }
  const auto load = [this](CheckpointReader& reader) -> Status {
    for (const StatePart& part : trainer_->state_parts()) {
      const Status read = reader.read(part.part, part.data);
      if (!read) return read;
    }
    return trainer_->restore(reader.manifest().state);
  };
  std::optional<std::string> loaded;
  const std::string& asked = options_.resume;
  if (!automatic && parse_step_name(base_name(asked))) {
    // Exactly this one: another would be a surprise.
    const auto read = [&]() -> Status {
      Result<CheckpointReader> reader = CheckpointReader::open(asked);
      if (!reader) return reader.error();
      const Status fits = trainer_->fits(reader->manifest().state);
      return fits ? load(*reader) : fits;
    };
    const Status mine = read();
    if (!ranks_.all_agree(mine.ok())) {
      return mine ? Error{"another rank could not read it", asked, ""} : mine.error();
    }
    loaded = asked;
  } else {
    const std::string root = automatic || is_directory(root_of(asked))
                                 ? root_of(automatic ? options_.outdir : asked)
                                 : asked;
    ResumeHandlers handlers;
    handlers.check = [this](const Manifest& m) { return trainer_->fits(m.state); };
    handlers.load = load;
    handlers.warn = [](const std::string& text) { log::warning(text); };
    Result<std::optional<std::string>> newest = resume_newest(root, ranks_, handlers);
    if (!newest) return newest;
    if (!*newest && !automatic) return Error{"no checkpoint there", "--resume " + asked, ""};
    loaded = *newest;
  }
  if (loaded) {
    const std::lock_guard lock(shared_->mutex);
    shared_->last = *loaded;
    handed_over_ = trainer_->steps();
  }
  return loaded;
}

Snapshot Checkpoints::snapshot(long step, bool copy) {
  Snapshot snapshot;
  snapshot.step = step;
  snapshot.tensors = trainer_->state_tensors();
  snapshot.state = trainer_->state();
  std::vector<StatePart> parts;
  size_t elements = 0;
  for (const StatePart& part : trainer_->state_parts()) {
    if (!part.written_here) continue;
    parts.push_back(part);
    elements += part.part.count;
  }
  auto held = std::make_shared<std::vector<float>>(copy ? elements : 0);
  float* to = held->data();
  for (const StatePart& part : parts) {
    const float* data = part.data;
    if (copy) {
      std::copy_n(part.data, part.part.count, to);
      data = to;
      to += part.part.count;
    }
    snapshot.parts.push_back({part.part, data});
  }
  snapshot.owner = held;
  return snapshot;
}

// A save that failed is told, and the run goes on, until it has happened too often in a row. All
// ranks come to the same answer, because a save is good or bad for all of them.
Status Checkpoints::judged(long step, const Status& saved) {
  if (saved) {
    failures_ = 0;
    return success();
  }
  ++failures_;
  if (ranks_.rank == 0) {
    log::warning(fmt::format("the checkpoint of step {} could not be saved ({} in a row): {}", step,
                             failures_, saved.error().one_line()));
  }
  if (failures_ < options_.save_failures) return success();
  return Error{fmt::format("{} saves in a row have failed", failures_), save_options_.root,
               "make room there, or choose another --outdir"};
}

Status Checkpoints::save(long step) {
  const long before = handed_over_;
  handed_over_ = step;
  if (saver_) {
    // Of the one before: this one is handed over in any case.
    const Status earlier = saver_->finish(kLastSaveAtMostS);
    faults_->before_save(step);
    const Status handed = saver_->save(snapshot(step, true));
    return judged(before, earlier ? handed : earlier);
  }
  faults_->before_save(step);
  const Result<std::string> saved = save_checkpoint(save_options_, ranks_, snapshot(step, false));
  if (saved) announce(*saved);
  if (!saved) handed_over_ = before;
  return judged(step, saved ? success() : Status(saved.error()));
}

Status Checkpoints::after_step(long step) {
  if (save_options_.root.empty() || options_.save_interval == 0) return success();
  return step % options_.save_interval == 0 ? save(step) : success();
}

Status Checkpoints::finish(long step) {
  if (save_options_.root.empty()) return success();
  // Nobody comes after this one: it is tried until it has failed too often.
  for (;;) {
    const int failures = failures_;
    Status tried = handed_over_ == step ? success() : save(step);
    if (tried && saver_) tried = judged(step, saver_->finish(kLastSaveAtMostS));
    if (!tried) return tried;
    if (failures_ <= failures) return success();
    handed_over_ = -1;
  }
}

}  // namespace ezpz::train
