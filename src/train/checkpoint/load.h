// Finding the newest checkpoint that is complete and valid, and reading parts of it: any parts,
// whatever sharding wrote it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/save.h"

namespace ezpz::train {

class CheckpointReader {
 public:
  // Checks the manifest and the files' sizes. The data's checksums are checked as it is read.
  static Result<CheckpointReader> open(const std::string& dir);
  CheckpointReader(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  [[nodiscard]] const std::string& dir() const;
  [[nodiscard]] const Manifest& manifest() const;
  // part.count elements in the tensor's stored dtype. An error names the file that is damaged.
  Status read(Part part, void* out);
  // Reads everything once.
  Status verify();

 private:
  struct State;
  explicit CheckpointReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Newest first: the directories of ROOT with a step's name, damaged ones too (they are the last,
// and say why when they are opened).
std::vector<std::string> list_checkpoints(const std::string& root);

struct ResumeHandlers {
  // Does it fit this run (shapes, seed)? An error ends the search: an older one would not fit
  // either.
  std::function<Status(const Manifest&)> check = [](const Manifest&) { return success(); };
  // Reads this rank's parts. An error means that it is damaged: the next older one is tried, on all
  // ranks, from the start.
  std::function<Status(CheckpointReader&)> load;
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

// Called by all ranks together. The directory that was loaded; nothing when there is none at all;
// an error when there are some and none can be used.
Result<std::optional<std::string>> resume_newest(const std::string& root, const Ranks&,
                                                 const ResumeHandlers&);

}  // namespace ezpz::train
