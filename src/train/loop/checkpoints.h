// When and how a run's checkpoints are saved and loaded. Every function is called by all ranks
// together. C++17.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "train/checkpoint/save.h"
#include "train/loop/fault.h"
#include "train/loop/trainer.h"

namespace ezpz::train {

class Checkpoints {
 public:
  // group: all ranks; saver: all ranks again, for the thread that saves behind. say: on rank 0.
  // All must outlive this.
  Checkpoints(const TrainOptions&, Comm* group, Comm* saver, Trainer*, Faults*,
              std::function<void(const std::string&)> say);
  ~Checkpoints();

  // As options.resume says. The directory that was loaded, if any.
  Result<std::optional<std::string>> resume();

  // After a step: saves when it is due. An error: saving has failed too often.
  Status after_step(long step);
  // At the end of a run or when it is asked to stop: what is not saved yet is, and is waited for.
  Status finish(long step);

  // The newest that was saved or loaded.
  [[nodiscard]] std::string last() const;

 private:
  Status save(long step);
  Status judged(long step, const Status& saved);
  Snapshot snapshot(long step, bool copy);
  void announce(const std::string& dir);

  struct Shared;
  const TrainOptions& options_;
  Ranks ranks_;
  Trainer* trainer_;
  Faults* faults_;
  std::function<void(const std::string&)> say_;
  SaveOptions save_options_;
  std::unique_ptr<Shared> shared_;  // with the thread that saves
  std::unique_ptr<AsyncSaver> saver_;
  long handed_over_ = -1;  // the step of the last snapshot, or of what was loaded
  int failures_ = 0;
};

// all_agree and from_rank_0 over a group: a peer that is lost is one that does not agree.
Ranks ranks_over(Comm* group);

}  // namespace ezpz::train
