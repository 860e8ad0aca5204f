#include "train/checkpoint/save.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/file.h"
#include "train/checkpoint/crc32c.h"
#include "train/checkpoint/directory.h"

namespace ezpz::train {
namespace {

constexpr const char* kPartial = ".partial";    // being written
constexpr const char* kReplaced = ".replaced";  // the old one of a step that is saved again
constexpr const char* kDeleting = ".deleting";

Status trouble(int number, const std::string& what, const std::string& where) {
  if (number == 0) return success();
  const char* hint =
      number == ENOSPC || number == EDQUOT ? "free space there or give another --outdir" : "";
  return Error{what + ": " + strerrordesc_np(number), where, hint};
}

std::string hidden(const std::string& root, int64_t step, const char* end) {
  return root + "/." + step_name(step) + end;
}

bool exists(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

// A file of this checkpoint: what is written goes through the seam, and the first trouble stays.
class Output {
 public:
  Output(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {
    trouble_ = disk_.create(path_, &fd_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (fd_ >= 0) disk_.close(fd_);
  }
  void write(const void* data, size_t bytes) {
    if (trouble_ == 0) trouble_ = disk_.write(fd_, data, bytes);
  }
  Status finish() {
    if (trouble_ == 0) trouble_ = disk_.sync(fd_);
    if (fd_ >= 0) {
      const int closed = disk_.close(std::exchange(fd_, -1));
      if (trouble_ == 0) trouble_ = closed;
    }
    return trouble(trouble_, "cannot write the checkpoint", path_);
  }
  [[nodiscard]] bool fine() const { return trouble_ == 0; }

 private:
  Disk& disk_;
  std::string path_;
  int fd_ = -1;
  int trouble_ = 0;
};

Status write_text(Disk& disk, const std::string& path, const std::string& text) {
  Output output(disk, path);
  output.write(text.data(), text.size());
  return output.finish();
}

const TensorSpec* find_tensor(const Snapshot& snapshot, const std::string& name) {
  for (const TensorSpec& tensor : snapshot.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

Status write_shard(Disk& disk, const std::string& dir, int rank, const Snapshot& snapshot) {
  ShardFile file;
  file.name = shard_name(rank);
  const std::string path = path_in(dir, file.name);
  Output output(disk, path);
  for (const PartData& data : snapshot.parts) {
    const TensorSpec* tensor = find_tensor(snapshot, data.part.tensor);
    if (tensor == nullptr) return Error{"no such tensor: " + data.part.tensor, path, ""};
    StoredPart part;
    static_cast<Part&>(part) = data.part;
    if (Status inside = normalize_part(*tensor, &part, path); !inside) return inside;
    part.offset = file.bytes;
    const uint64_t bytes = part.count * dtype_bytes(tensor->dtype);
    for (uint64_t done = 0; done < bytes && output.fine(); done += kChecksumBytes) {
      const char* from = static_cast<const char*>(data.data) + done;
      const uint64_t n = std::min(kChecksumBytes, bytes - done);
      part.checksums.push_back(crc32c(0, from, n));
      output.write(from, n);
    }
    file.bytes += bytes;
    file.parts.push_back(std::move(part));
  }
  if (Status written = output.finish(); !written) return written;
  return write_text(disk, path_in(dir, description_name(rank)), format_shard_file(file));
}

uint64_t next_sequence(const std::string& root) {
  uint64_t next = 1;
  for (const std::string& name : list_names(root)) {
    if (!parse_step_name(name)) continue;
    if (const auto manifest = read_manifest(path_in(root, name)); manifest.ok()) {
      next = std::max(next, manifest->sequence + 1);
    }
  }
  return next;
}

Status write_manifest(const SaveOptions& options, const Ranks& ranks, const Snapshot& snapshot,
                      const std::string& partial) {
  Disk& disk = *options.disk;
  Manifest manifest;
  manifest.step = snapshot.step;
  manifest.sequence = next_sequence(options.root);
  manifest.world_size = ranks.world_size;
  manifest.state = snapshot.state;
  manifest.tensors = snapshot.tensors;
  for (int rank = 0; rank < ranks.world_size; ++rank) {
    const std::string path = path_in(partial, description_name(rank));
    Result<std::string> text = read_file(path, 1U << 30U);
    if (!text) {
      return Error{"the shard of rank " + std::to_string(rank) + " is not there", path,
                   "is --outdir on a file system that all nodes share?"};
    }
    Result<ShardFile> file = parse_shard_file(*text, path);
    if (!file) return file.error();
    manifest.files.push_back(*std::move(file));
  }
  const std::string text = format_manifest(manifest);
  if (Status written = write_text(disk, partial + "/manifest.json", text); !written) return written;
  const std::string sum = std::to_string(crc32c(0, text.data(), text.size())) + "\n";
  if (Status written = write_text(disk, partial + "/manifest.crc32c", sum); !written)
    return written;
  // Reading it back is what a resume will do: sizes and coverage are checked here, once.
  if (auto back = read_manifest(partial); !back) return back.error();
  for (int rank = 0; rank < ranks.world_size; ++rank) {
    const int gone = disk.remove_file(path_in(partial, description_name(rank)));
    if (gone != 0) return trouble(gone, "cannot write the checkpoint", partial);
  }
  return trouble(disk.sync_directory(partial), "cannot write the checkpoint", partial);
}

// Into its place. A step that is there already (a run that went back to an older checkpoint comes
// by it again) is swapped for the new one in one instant where the file system can.
Status publish(const SaveOptions& options, int64_t step, const std::string& partial) {
  Disk& disk = *options.disk;
  const std::string place = path_in(options.root, step_name(step));
  const std::string what = "cannot put the checkpoint in its place";
  if (!exists(place)) {
    if (const int number = disk.rename(partial, place)) return trouble(number, what, place);
  } else if (disk.exchange(partial, place) == 0) {
    remove_checkpoint(partial, disk);
  } else {
    const std::string old = hidden(options.root, step, kReplaced);
    if (const int number = disk.rename(place, old)) return trouble(number, what, place);
    if (const int number = disk.rename(partial, place)) {
      disk.rename(old, place);
      return trouble(number, what, place);
    }
    remove_checkpoint(old, disk);
  }
  return trouble(disk.sync_directory(options.root), what, options.root);
}

// Keeps the newest `keep`, by sequence; the one just saved is among them. What cannot be read is
// left for a person to look at.
void retain(const SaveOptions& options) {
  std::vector<std::pair<uint64_t, int64_t>> known;
  for (const std::string& name : list_names(options.root)) {
    const std::optional<int64_t> step = parse_step_name(name);
    if (!step) continue;
    if (const auto manifest = read_manifest(path_in(options.root, name)); manifest.ok()) {
      known.emplace_back(manifest->sequence, *step);
    }
  }
  std::sort(known.rbegin(), known.rend());
  const auto keep = static_cast<size_t>(std::max(1, options.keep));
  for (size_t i = keep; i < known.size(); ++i) {
    // Renamed first: a directory that is half deleted must not look like a damaged checkpoint.
    const std::string place = path_in(options.root, step_name(known[i].second));
    const std::string doomed = hidden(options.root, known[i].second, kDeleting);
    if (const int number = options.disk->rename(place, doomed)) {
      options.warn(trouble(number, "cannot remove an old checkpoint", place).error().one_line());
    } else if (!remove_checkpoint(doomed, *options.disk)) {
      options.warn("an old checkpoint is not gone whole: " + doomed);
    }
  }
}

Error other_rank(const std::string& where) {
  return Error{"another rank could not save its part of the checkpoint", where,
               "its own line says why"};
}

}  // namespace

Result<std::string> save_checkpoint(const SaveOptions& options, const Ranks& ranks,
                                    const Snapshot& snapshot) {
  Disk& disk = *options.disk;
  const std::string partial = hidden(options.root, snapshot.step, kPartial);
  const std::string place = path_in(options.root, step_name(snapshot.step));
  const bool first = ranks.rank == 0;

  Status mine = success();
  if (first) {
    mine = make_directories(options.root);
    if (mine.ok() && exists(partial)) remove_checkpoint(partial, disk);
    if (mine.ok())
      mine = trouble(disk.make_directory(partial), "cannot write a checkpoint", partial);
  }
  const auto agree = [&] { return ranks.all_agree(mine.ok()); };
  const auto fail = [&]() -> Result<std::string> {
    if (first) remove_checkpoint(partial, disk);
    // Rank 0 is answered for by its caller; what another rank met only that rank can tell.
    if (!first && !mine.ok()) options.warn(mine.error().one_line());
    return mine.ok() ? other_rank(partial) : mine.error();
  };
  if (!agree()) return fail();

  mine = write_shard(disk, partial, ranks.rank, snapshot);
  if (!agree()) return fail();

  if (first) {
    mine = write_manifest(options, ranks, snapshot, partial);
    if (mine.ok()) mine = publish(options, snapshot.step, partial);
  }
  if (!agree()) return fail();
  if (first) retain(options);
  return place;
}

void clean_leftovers(const std::string& root, Disk& disk) {
  for (const std::string& name : list_names(root)) {
    if (name.empty() || name[0] != '.') continue;
    const size_t dot = name.rfind('.');
    if (dot == 0) continue;
    const std::string end = name.substr(dot);
    const std::string step = name.substr(1, dot - 1);
    if (!parse_step_name(step)) continue;
    const std::string path = path_in(root, name);
    if (end == kReplaced && !exists(path_in(root, step))) {
      disk.rename(path, path_in(root, step));
    } else if (end == kPartial || end == kDeleting || end == kReplaced) {
      remove_checkpoint(path, disk);
    }
  }
}

struct AsyncSaver::State {
  SaveOptions options;
  Ranks ranks;
  std::function<void(const std::string&)> on_saved;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Snapshot> waiting;
  bool busy = false;
  bool ending = false;
  bool given_up = false;
  std::optional<Error> error;
  std::thread thread;

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return waiting || ending; });
      if (!waiting) return;
      lock.unlock();
      const Result<std::string> saved = save_checkpoint(options, ranks, *waiting);
      if (saved.ok() && on_saved) on_saved(*saved);
      lock.lock();
      waiting.reset();
      busy = false;
      if (!saved.ok()) error = saved.error();
      changed.notify_all();
    }
  }
  Status take_error() {
    if (!error) return success();
    Status status = *error;
    error.reset();
    return status;
  }
};

AsyncSaver::AsyncSaver(SaveOptions options, Ranks ranks,
                       std::function<void(const std::string&)> on_saved)
    : state_(std::make_shared<State>()) {
  state_->options = std::move(options);
  state_->ranks = std::move(ranks);
  state_->on_saved = std::move(on_saved);
  state_->thread = std::thread([state = state_] { state->run(); });
}

AsyncSaver::~AsyncSaver() {
  bool given_up = false;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->ending = true;
    given_up = state_->given_up && state_->busy;
    state_->changed.notify_all();
  }
  // The thread keeps the state alive; a write that hangs must not keep the process from its end.
  if (given_up) {
    state_->thread.detach();
  } else {
    state_->thread.join();
  }
}

Status AsyncSaver::save(Snapshot snapshot) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->busy; });
  Status before = state_->take_error();
  state_->waiting = std::move(snapshot);
  state_->busy = true;
  state_->changed.notify_all();
  return before;
}

bool AsyncSaver::busy() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->busy;
}

Status AsyncSaver::finish(double at_most_s) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const bool done = state_->changed.wait_for(lock, std::chrono::duration<double>(at_most_s),
                                             [&] { return !state_->busy; });
  if (!done) {
    state_->given_up = true;
    return Error{"the checkpoint is still being written", state_->options.root,
                 "the file system is slow or hangs"};
  }
  return state_->take_error();
}

}  // namespace ezpz::train
