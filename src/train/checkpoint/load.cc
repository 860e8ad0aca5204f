#include "train/checkpoint/load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <utility>

#include "base/file.h"
#include "train/checkpoint/crc32c.h"
#include "train/checkpoint/directory.h"

namespace ezpz::train {
namespace {

constexpr size_t kMaxChunks = 16;  // of kChecksumBytes, kept while parts are put together

struct Located {
  const StoredPart* part;
  size_t file;
};

// Elements that lie side by side both in the tensor and in a stored part.
struct Run {
  const Located* source = nullptr;
  uint64_t at = 0;  // element of the part
  uint64_t length = 0;
};

}  // namespace

struct CheckpointReader::State {
  std::string dir;
  Manifest manifest;
  std::vector<Fd> files;
  std::map<std::string, std::vector<Located>> parts;

  struct Chunk {
    const StoredPart* part;
    uint64_t index;
    std::vector<char> bytes;
  };
  std::list<Chunk> chunks;  // most recently used first

  Result<const std::vector<char>*> chunk(const Located& source, uint64_t index, uint64_t bytes);
  Run find(const std::vector<Located>& sources, uint64_t row, uint64_t column, uint64_t width,
           uint64_t at_most) const;
  Status copy(const Run& run, size_t element_bytes, char* out);
};

Result<const std::vector<char>*> CheckpointReader::State::chunk(const Located& source,
                                                                uint64_t index, uint64_t bytes) {
  for (auto it = chunks.begin(); it != chunks.end(); ++it) {
    if (it->part != source.part || it->index != index) continue;
    chunks.splice(chunks.begin(), chunks, it);
    return &chunks.front().bytes;
  }
  const ShardFile& file = manifest.files[source.file];
  const std::string path = path_in(dir, file.name);
  const uint64_t begin = index * kChecksumBytes;
  std::vector<char> content(std::min(kChecksumBytes, bytes - begin));
  uint64_t done = 0;
  while (done < content.size()) {
    const ssize_t n = pread(files[source.file].get(), content.data() + done, content.size() - done,
                            static_cast<off_t>(source.part->offset + begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{std::string("cannot read: ") + strerrordesc_np(errno), path, ""};
    if (n == 0) return Error{"a shard ends too early", path, ""};
    done += static_cast<uint64_t>(n);
  }
  if (crc32c(0, content.data(), content.size()) != source.part->checksums[index]) {
    return Error{"damaged: the checksum of tensor \"" + source.part->tensor + "\" is wrong", path,
                 ""};
  }
  chunks.push_front({source.part, index, std::move(content)});
  if (chunks.size() > kMaxChunks) chunks.pop_back();
  return &chunks.front().bytes;
}

Run CheckpointReader::State::find(const std::vector<Located>& sources, uint64_t row,
                                  uint64_t column, uint64_t width, uint64_t at_most) const {
  for (const Located& source : sources) {
    const StoredPart& part = *source.part;
    if (row < part.first_row || row >= part.first_row + part.rows || column < part.first_column ||
        column >= part.first_column + part.columns) {
      continue;
    }
    const uint64_t flat = (row - part.first_row) * part.columns + column - part.first_column;
    if (flat < part.first || flat >= part.first + part.count) continue;
    // Beyond the end of a row the part goes on only when it is as wide as the tensor.
    uint64_t length = part.first + part.count - flat;
    if (part.columns != width) length = std::min(length, part.first_column + part.columns - column);
    return {&source, flat - part.first, std::min(length, at_most)};
  }
  return {};
}

Status CheckpointReader::State::copy(const Run& run, size_t element_bytes, char* out) {
  const uint64_t part_bytes = run.source->part->count * element_bytes;
  uint64_t from = run.at * element_bytes;
  uint64_t left = run.length * element_bytes;
  while (left > 0) {
    const uint64_t index = from / kChecksumBytes;
    const uint64_t within = from % kChecksumBytes;
    auto content = chunk(*run.source, index, part_bytes);
    if (!content) return content.error();
    const uint64_t n = std::min<uint64_t>(left, (*content)->size() - within);
    memcpy(out, (*content)->data() + within, n);
    out += n;
    from += n;
    left -= n;
  }
  return success();
}

CheckpointReader::CheckpointReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader::~CheckpointReader() = default;

const std::string& CheckpointReader::dir() const { return state_->dir; }
const Manifest& CheckpointReader::manifest() const { return state_->manifest; }

Result<CheckpointReader> CheckpointReader::open(const std::string& dir) {
  Result<Manifest> manifest = read_manifest(dir);
  if (!manifest) return manifest.error();
  auto state = std::make_unique<State>();
  state->dir = dir;
  state->manifest = *std::move(manifest);
  for (size_t i = 0; i < state->manifest.files.size(); ++i) {
    const ShardFile& file = state->manifest.files[i];
    const std::string path = path_in(dir, file.name);
    state->files.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!state->files.back()) {
      return Error{std::string("cannot read: ") + strerrordesc_np(errno), path, ""};
    }
    for (const StoredPart& part : file.parts) {
      if (part.count > 0) state->parts[part.tensor].push_back({&part, i});
    }
  }
  return CheckpointReader(std::move(state));
}

Status CheckpointReader::read(Part part, void* out) {
  const TensorSpec* tensor = state_->manifest.find(part.tensor);
  if (tensor == nullptr) {
    return Error{"the checkpoint has no tensor \"" + part.tensor + "\"", state_->dir, ""};
  }
  if (Status inside = normalize_part(*tensor, &part, state_->dir); !inside) return inside;
  const uint64_t width = TensorInfo{tensor->name, tensor->dtype, tensor->shape, 0, 0}.columns();
  const size_t size = dtype_bytes(tensor->dtype);
  const std::vector<Located>& sources = state_->parts[part.tensor];
  auto* to = static_cast<char*>(out);
  for (uint64_t done = 0; done < part.count;) {
    const uint64_t flat = part.first + done;
    const uint64_t column = part.first_column + flat % part.columns;
    uint64_t wanted = part.count - done;
    if (part.columns != width) wanted = std::min(wanted, part.columns - flat % part.columns);
    const Run run =
        state_->find(sources, part.first_row + flat / part.columns, column, width, wanted);
    if (run.source == nullptr)
      return Error{"tensor \"" + part.tensor + "\" is not whole", state_->dir, ""};
    if (Status copied = state_->copy(run, size, to + done * size); !copied) return copied;
    done += run.length;
  }
  return success();
}

Status CheckpointReader::verify() {
  for (const auto& [name, sources] : state_->parts) {
    for (const Located& source : sources) {
      const uint64_t bytes = source.part->count * dtype_bytes(state_->manifest.find(name)->dtype);
      for (uint64_t i = 0; i < source.part->checksums.size(); ++i) {
        if (auto content = state_->chunk(source, i, bytes); !content) return content.error();
      }
    }
  }
  return success();
}

std::vector<std::string> list_checkpoints(const std::string& root) {
  struct Known {
    uint64_t sequence;
    int64_t step;
    std::string path;
  };
  std::vector<Known> known;
  for (const std::string& name : list_names(root)) {
    const std::optional<int64_t> step = parse_step_name(name);
    if (!step) continue;
    const std::string path = path_in(root, name);
    const auto manifest = read_manifest(path);
    known.push_back({manifest.ok() ? manifest->sequence : 0, *step, path});
  }
  std::sort(known.begin(), known.end(), [](const Known& a, const Known& b) {
    return std::tie(a.sequence, a.step) > std::tie(b.sequence, b.step);
  });
  std::vector<std::string> paths;
  paths.reserve(known.size());
  for (Known& checkpoint : known) paths.push_back(std::move(checkpoint.path));
  return paths;
}

Result<std::optional<std::string>> resume_newest(const std::string& root, const Ranks& ranks,
                                                 const ResumeHandlers& handlers) {
  std::vector<std::string> candidates;
  if (ranks.rank == 0) candidates = list_checkpoints(root);
  // The damaged ones first, so that the warning stands before the answer.
  std::vector<std::string> usable;
  for (const std::string& dir : candidates) {
    const auto manifest = read_manifest(dir);
    if (manifest.ok()) {
      usable.push_back(dir);
    } else {
      handlers.warn("checkpoint " + dir +
                    " is damaged and left out: " + manifest.error().one_line());
    }
  }
  const bool had_any = !candidates.empty();
  for (size_t next = 0;; ++next) {
    // Rank 0 says which one: what the others see of a shared file system may be a moment older.
    const std::string choice =
        next < usable.size() ? usable[next] : std::string(had_any ? "?" : "");
    const Result<std::string> told = ranks.from_rank_0(choice);
    if (!told) return told.error();
    if (told->empty()) return std::optional<std::string>();
    if (*told == "?") {
      return Error{"there are checkpoints, and none of them is whole", root,
                   "look at the warnings; start anew with --resume none"};
    }
    Result<CheckpointReader> reader = CheckpointReader::open(*told);
    const Status fits = reader.ok() ? handlers.check(reader->manifest()) : success();
    if (!ranks.all_agree(fits.ok())) {
      if (!fits.ok()) return fits.error();
      return Error{"the checkpoint does not fit another rank", *told, "its own line says why"};
    }
    const Status loaded = reader.ok() ? handlers.load(*reader) : Status(reader.error());
    if (ranks.all_agree(loaded.ok())) return std::optional<std::string>(*told);
    const std::string why =
        loaded.ok() ? "another rank could not read it" : loaded.error().one_line();
    handlers.warn("checkpoint " + *told + " is damaged, an older one is tried: " + why);
  }
}

}  // namespace ezpz::train
