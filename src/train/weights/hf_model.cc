#include "train/weights/hf_model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "train/weights/names.h"
#include "train/weights/strict_json.h"

namespace ezpz::train {
namespace {

constexpr size_t kMaxIndexBytes = 256U << 20U;

// A plain name within the folder: an index from the network must not reach for other files.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Error system_error(const std::string& what, const std::string& where) {
  return Error{what + ": " + strerrordesc_np(errno), where, ""};
}

// The files of the folder that hold weights.
Result<std::vector<std::string>> weight_files(const std::string& dir) {
  const std::string index_path = dir + "/model.safetensors.index.json";
  if (!file_exists(index_path)) {
    if (file_exists(dir + "/model.safetensors")) {
      return std::vector<std::string>{"model.safetensors"};
    }
    return Error{"no weights: neither model.safetensors nor model.safetensors.index.json", dir,
                 "only safetensors are read; convert a pytorch_model.bin first"};
  }
  Result<std::string> text = read_file(index_path, kMaxIndexBytes);
  if (!text) return text.error();
  Result<HfIndex> index = parse_hf_index(*text, index_path);
  if (!index) return index.error();
  std::set<std::string> names;
  for (const auto& [tensor, file] : index->weight_map) names.insert(file);
  return std::vector<std::string>(names.begin(), names.end());
}

std::string file_name(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name;
}

uint64_t bytes_of(const TensorSpec& tensor) {
  uint64_t bytes = dtype_bytes(tensor.dtype);
  for (const int64_t dimension : tensor.shape) bytes *= static_cast<uint64_t>(dimension);
  return bytes;
}

Status sync_folder(const std::string& dir) {
  const Fd folder(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || fsync(folder.get()) != 0) return system_error("cannot write", dir);
  return success();
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<HfIndex> parse_hf_index(std::string_view text, const std::string& where) {
  Result<StrictJson> json = parse_strict_json(text, where);
  if (!json) return json.error();
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object()) {
    return Error{"no weight_map", where, "is it a model.safetensors.index.json?"};
  }
  HfIndex index;
  if (json->contains("metadata")) {
    index.total_size = json_uint((*json)["metadata"], "total_size").value_or(0);
  }
  for (const auto& [tensor, file] : (*json)["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>())) {
      return Error{"tensor \"" + tensor + "\" is said to be in something that is no file name",
                   where, ""};
    }
    index.weight_map[tensor] = file.get<std::string>();
  }
  if (index.weight_map.empty()) return Error{"the weight_map is empty", where, ""};
  return index;
}

std::string format_hf_index(const HfIndex& index) {
  return dump_pretty(Json{{"metadata", {{"total_size", index.total_size}}},
                          {"weight_map", index.weight_map}}) +
         "\n";
}

Result<HfModel> HfModel::open(const std::string& dir) {
  HfModel model;
  model.dir_ = dir;
  Result<HfConfig> config = read_hf_config(dir);
  if (!config) return config.error();
  model.config_ = *std::move(config);
  Result<std::vector<std::string>> names = weight_files(dir);
  if (!names) return names.error();
  std::map<std::string, std::string> seen;
  for (const std::string& name : *names) {
    std::string path = dir;
    path.append("/").append(name);
    Result<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file) return file.error();
    for (const TensorInfo& tensor : file->tensors()) {
      const auto [other, is_new] = seen.emplace(tensor.name, name);
      if (!is_new) {
        return Error{"tensor \"" + tensor.name + "\" is in both " + other->second + " and " + name,
                     dir, ""};
      }
    }
    model.files_.push_back(std::make_unique<SafetensorsFile>(*std::move(file)));
  }
  for (const TensorSpec& wanted : model_tensors(model.config_, DType::f32)) {
    const Where found = model.find(wanted.name);
    const std::string name = hf_name(wanted.name).value_or(wanted.name);
    if (!found) {
      return Error{"tensor \"" + name + "\" is in none of the " +
                       std::to_string(model.files_.size()) + " weight file(s)",
                   dir, "is the download complete?"};
    }
    if (found.tensor->shape != wanted.shape) {
      return Error{"tensor \"" + name + "\" is " + shape_text(found.tensor->shape) +
                       ", but config.json makes it " + shape_text(wanted.shape),
                   found.file->path(), ""};
    }
    if (!is_trainable(found.tensor->dtype)) {
      return Error{"tensor \"" + name + "\" is " + std::string(dtype_word(found.tensor->dtype)),
                   found.file->path(),
                   "weights must be F32, F16 or BF16; convert the checkpoint first"};
    }
  }
  return model;
}

HfModel::Where HfModel::find(std::string_view name) const {
  if (config_.tie_word_embeddings && name == "output") name = "embed";
  const std::optional<std::string> theirs = hf_name(name);
  if (!theirs) return {};
  for (const auto& file : files_) {
    if (const TensorInfo* tensor = file->find(*theirs)) return {file.get(), tensor};
  }
  return {};
}

Status HfModel::read_block(std::string_view name, uint64_t first_row, uint64_t rows,
                           uint64_t first_column, uint64_t columns, float* out) const {
  const Where found = find(name);
  if (!found) return Error{"the model has no \"" + std::string(name) + "\"", dir_, ""};
  return found.file->read_block(*found.tensor, first_row, rows, first_column, columns, out);
}

Status HfModel::read_elements(std::string_view name, uint64_t first, uint64_t count,
                              float* out) const {
  const Where found = find(name);
  if (!found) return Error{"the model has no \"" + std::string(name) + "\"", dir_, ""};
  return found.file->read_elements(*found.tensor, first, count, out);
}

struct HfModelWriter::State {
  std::string dir;
  std::string temporary;
  std::vector<std::vector<TensorSpec>> files;  // what each holds, under Hugging Face's names
  std::vector<uint64_t> file_elements;
  HfIndex index;
  std::optional<SafetensorsWriter> writer;
  size_t at = 0;
  uint64_t done = 0;  // elements of the file that is being written
  std::vector<std::string> written;
  bool finished = false;
};

HfModelWriter::HfModelWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
HfModelWriter::HfModelWriter(HfModelWriter&&) noexcept = default;

HfModelWriter::~HfModelWriter() {
  if (!state_ || state_->finished) return;
  state_->writer.reset();
  for (const std::string& name : state_->written) unlink((state_->temporary + "/" + name).c_str());
  rmdir(state_->temporary.c_str());
}

Result<HfModelWriter> HfModelWriter::open(const std::string& dir, const HfConfig& config,
                                          DType dtype, uint64_t max_file_bytes) {
  auto state = std::make_unique<State>();
  state->dir = dir;
  while (state->dir.size() > 1 && state->dir.back() == '/') state->dir.pop_back();
  state->temporary = state->dir + ".tmp." + std::to_string(getpid());
  uint64_t bytes = 0;
  for (TensorSpec tensor : model_tensors(config, dtype)) {
    tensor.name = hf_name(tensor.name).value_or(tensor.name);
    const uint64_t more = bytes_of(tensor);
    if (state->files.empty() || bytes + more > max_file_bytes) {
      state->files.emplace_back();
      state->file_elements.push_back(0);
      bytes = 0;
    }
    bytes += more;
    state->index.total_size += more;
    state->file_elements.back() += more / dtype_bytes(dtype);
    state->files.back().push_back(std::move(tensor));
  }
  for (size_t i = 0; i < state->files.size(); ++i) {
    for (const TensorSpec& tensor : state->files[i]) {
      state->index.weight_map[tensor.name] = file_name(i, state->files.size());
    }
  }
  if (rmdir(state->dir.c_str()) != 0 && errno != ENOENT) {
    return Error{std::string("cannot write a model there: ") + strerrordesc_np(errno), state->dir,
                 "give a folder that does not exist yet"};
  }
  if (Status made = make_directories(state->temporary); !made) return made.error();
  HfModelWriter writer(std::move(state));
  HfConfig written = config;
  written.torch_dtype = dtype == DType::f16    ? "float16"
                        : dtype == DType::bf16 ? "bfloat16"
                                               : "float32";
  if (Status added = writer.add_file("config.json", format_hf_config(written)); !added) {
    return added.error();
  }
  return writer;
}

Status HfModelWriter::append(const float* values, uint64_t count) {
  State& state = *state_;
  while (count > 0) {
    if (state.at == state.files.size()) {
      return Error{"more values than the model has", state.dir, ""};
    }
    if (!state.writer) {
      const std::string name = file_name(state.at, state.files.size());
      Result<SafetensorsWriter> opened =
          SafetensorsWriter::open(state.temporary + "/" + name, state.files[state.at]);
      if (!opened) return opened.error();
      state.writer.emplace(*std::move(opened));
      state.written.push_back(name);
    }
    const uint64_t n = std::min(count, state.file_elements[state.at] - state.done);
    if (Status appended = state.writer->append(values, n); !appended) return appended;
    values += n;
    count -= n;
    state.done += n;
    if (state.done == state.file_elements[state.at]) {
      if (Status ended = state.writer->finish(); !ended) return ended;
      state.writer.reset();
      ++state.at;
      state.done = 0;
    }
  }
  return success();
}

Status HfModelWriter::add_file(const std::string& name, std::string_view content) {
  if (!is_plain_name(name)) return Error{"not a plain file name", name, ""};
  state_->written.push_back(name);
  return write_file_atomically(state_->temporary + "/" + name, content);
}

Status HfModelWriter::finish() {
  State& state = *state_;
  if (state.at != state.files.size()) {
    return Error{"the model was not written whole", state.dir, ""};
  }
  if (state.files.size() > 1) {
    Status added = add_file("model.safetensors.index.json", format_hf_index(state.index));
    if (!added) return added;
  }
  if (Status synced = sync_folder(state.temporary); !synced) return synced;
  if (rename(state.temporary.c_str(), state.dir.c_str()) != 0) {
    return system_error("cannot put the model in its place", state.dir);
  }
  state.finished = true;
  return sync_folder(parent_of(state.dir));
}

}  // namespace ezpz::train
