// Saving a sharded checkpoint, by all ranks together, so that a crash at any instant leaves the old
// one or the new one whole:
//
//   rank 0   makes ROOT/.step-N.partial                                    all agree
//   each     writes shard-RRRRR.bin and its description there, fsyncs      all agree
//   rank 0   checks that every shard is there and that they cover every tensor once, writes the
//            manifest, fsyncs, renames to ROOT/step-N, fsyncs ROOT         all agree
//
// ROOT must be on a file system that all ranks share. Directories that ezpz-train did not name are
// never touched.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/disk.h"
#include "train/checkpoint/manifest.h"

namespace ezpz::train {

// The ranks that save or load together.
struct Ranks {
  int rank = 0;
  int world_size = 1;
  // True when every rank gave true; false when one did not, or could not be reached in time. Acts
  // as a barrier. With an asynchronous saver it is called on the writer's thread: give it a process
  // group of its own.
  std::function<bool(bool)> all_agree = [](bool mine) { return mine; };
  // Rank 0's text on every rank; an error when it did not come.
  std::function<Result<std::string>(const std::string&)> from_rank_0 = [](const std::string& text) {
    return Result<std::string>(text);
  };
};

struct PartData {
  Part part;
  const void* data = nullptr;  // part.count elements of the tensor's dtype
};

struct Snapshot {
  int64_t step = 0;
  std::vector<TensorSpec> tensors;    // whole tensors, the same on every rank
  std::vector<PartData> parts;        // this rank's; together the ranks' cover everything once
  std::string state;                  // rank 0's counts; UTF-8
  std::shared_ptr<const void> owner;  // keeps data alive until it is written
};

struct SaveOptions {
  std::string root;  // made when missing
  int keep = 2;      // checkpoints that stay; at least 1
  Disk* disk = &Disk::real();
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

// "ROOT/step-N", when all ranks agreed that it is there. On an error nothing of it is left, and the
// earlier ones are untouched.
Result<std::string> save_checkpoint(const SaveOptions&, const Ranks&, const Snapshot&);

// Removes what a killed run left half-done (by its exact names), and puts back a checkpoint that
// was being replaced. By rank 0, before anything is saved or loaded, while no other run uses ROOT.
void clean_leftovers(const std::string& root, Disk& disk = Disk::real());

// Saves behind the training: one thread, one checkpoint in flight. All ranks must call it in the
// same order.
class AsyncSaver {
 public:
  // on_saved: on the writer's thread, with the directory.
  AsyncSaver(SaveOptions options, Ranks ranks, std::function<void(const std::string&)> on_saved);
  ~AsyncSaver();  // waits for the one in flight, unless finish() gave it up
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Waits for the one before, tells how that ended, and hands this one over in any case.
  Status save(Snapshot snapshot);
  [[nodiscard]] bool busy() const;
  // Waits for the one in flight and tells how it ended; an error when it takes longer.
  Status finish(double at_most_s);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ezpz::train
