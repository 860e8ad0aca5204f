#include "train/weights/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "train/weights/strict_json.h"

namespace ezpz::train {
namespace {

constexpr uint64_t kMaxDimensions = 16;
constexpr uint64_t kBufferBytes = 1U << 20U;

// The product, or nothing when it does not fit 63 bits.
std::optional<uint64_t> product(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result) || result > INT64_MAX) return std::nullopt;
  return result;
}

std::optional<std::vector<int64_t>> read_shape(const StrictJson& entry) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array() || found->size() > kMaxDimensions) return {};
  std::vector<int64_t> shape;
  for (const StrictJson& dimension : *found) {
    if (!dimension.is_number_unsigned() || dimension.get<uint64_t>() > INT64_MAX) return {};
    shape.push_back(dimension.get<int64_t>());
  }
  return shape;
}

Result<TensorInfo> read_entry(const std::string& name, const StrictJson& entry, uint64_t data_bytes,
                              const std::string& where) {
  const auto wrong = [&](const std::string& what) {
    return Error{"tensor \"" + name + "\" " + what, where, "is the file whole and unchanged?"};
  };
  if (!entry.is_object()) return wrong("is not described by an object");
  TensorInfo tensor;
  tensor.name = name;
  const std::optional<std::string> word = json_text(entry, "dtype");
  const std::optional<DType> dtype = word ? parse_dtype(*word) : std::nullopt;
  if (!dtype) return wrong("has no dtype that is known: \"" + word.value_or("") + "\"");
  tensor.dtype = *dtype;
  std::optional<std::vector<int64_t>> shape = read_shape(entry);
  if (!shape) return wrong("has no shape of whole numbers");
  tensor.shape = *std::move(shape);
  const auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 ||
      !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned()) {
    return wrong("has no data_offsets");
  }
  tensor.begin = (*offsets)[0].get<uint64_t>();
  tensor.end = (*offsets)[1].get<uint64_t>();
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    return wrong("lies outside of the file: bytes " + std::to_string(tensor.begin) + " to " +
                 std::to_string(tensor.end) + " of " + std::to_string(data_bytes));
  }
  std::optional<uint64_t> bytes = dtype_bytes(tensor.dtype);
  // A dimension of zero makes the tensor empty, however large the others.
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) bytes = 0;
  for (const int64_t dimension : tensor.shape) {
    if (bytes) bytes = product(*bytes, static_cast<uint64_t>(dimension));
  }
  if (!bytes || *bytes != tensor.end - tensor.begin) {
    return wrong("has " + std::to_string(tensor.end - tensor.begin) + " bytes, not those of " +
                 std::string(dtype_word(tensor.dtype)) + " " + shape_text(tensor.shape));
  }
  return tensor;
}

// All of [offset, offset + count), or what went wrong.
Status read_exactly(int fd, uint64_t offset, uint64_t count, void* out, const std::string& where) {
  auto* to = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t n =
        pread(fd, to, std::min<uint64_t>(count, 1U << 30U), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{std::string("cannot read: ") + strerrordesc_np(errno), where, ""};
    if (n == 0) return Error{"the file ends too early", where, "was it cut while it was read?"};
    to += n;
    offset += static_cast<uint64_t>(n);
    count -= static_cast<uint64_t>(n);
  }
  return success();
}

Status out_of_range(const TensorInfo& tensor, const std::string& where) {
  return Error{"a part outside of tensor \"" + tensor.name + "\" " + shape_text(tensor.shape) +
                   " was asked for",
               where, ""};
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error write_error(const std::string& path) {
  return Error{std::string("cannot write: ") + strerrordesc_np(errno), path, ""};
}

}  // namespace

uint64_t TensorInfo::elements() const {
  uint64_t count = 1;
  for (const int64_t dimension : shape) count *= static_cast<uint64_t>(dimension);
  return count;
}

uint64_t TensorInfo::rows() const { return shape.empty() ? 1 : static_cast<uint64_t>(shape[0]); }

uint64_t TensorInfo::columns() const {
  uint64_t count = 1;
  for (size_t i = 1; i < shape.size(); ++i) count *= static_cast<uint64_t>(shape[i]);
  return count;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                                   const std::string& where) {
  if (json.empty() || json[0] != '{') {
    return Error{"not a safetensors file: its header does not begin with '{'", where, ""};
  }
  Result<StrictJson> parsed = parse_strict_json(json, where);
  if (!parsed) return parsed.error();
  SafetensorsHeader header;
  for (const auto& [name, entry] : parsed->items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return Error{"__metadata__ is not an object", where, ""};
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Error{"__metadata__ holds more than texts", where, ""};
        header.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    Result<TensorInfo> tensor = read_entry(name, entry, data_bytes, where);
    if (!tensor) return tensor.error();
    header.tensors.push_back(*std::move(tensor));
  }
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) {
              return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
            });
  uint64_t expected = 0;
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.begin != expected) {
      return Error{
          "tensor \"" + tensor.name + "\" " +
              (tensor.begin < expected ? "overlaps the one before it" : "leaves a hole before it"),
          where, "is the file whole and unchanged?"};
    }
    expected = tensor.end;
  }
  if (expected != data_bytes) {
    return Error{std::to_string(data_bytes - expected) + " bytes at the end belong to no tensor",
                 where, "is the file whole and unchanged?"};
  }
  return header;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  file.fd_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.fd_) {
    return Error{std::string("cannot read: ") + strerrordesc_np(errno), path, ""};
  }
  struct stat info {};
  if (fstat(file.fd_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error{"not a file", path, ""};
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t header_bytes = 0;
  if (size < sizeof header_bytes) return Error{"too short for a safetensors file", path, ""};
  if (Status read = read_exactly(file.fd_.get(), 0, sizeof header_bytes, &header_bytes, path);
      !read) {
    return read.error();
  }
  if (header_bytes > kMaxSafetensorsHeaderBytes || header_bytes > size - sizeof header_bytes) {
    return Error{"not a safetensors file: a header of " + std::to_string(header_bytes) +
                     " bytes in a file of " + std::to_string(size),
                 path, "a download that stopped, or a pointer file of git-lfs?"};
  }
  std::string json(header_bytes, '\0');
  if (Status read =
          read_exactly(file.fd_.get(), sizeof header_bytes, header_bytes, json.data(), path);
      !read) {
    return read.error();
  }
  file.data_at_ = sizeof header_bytes + header_bytes;
  Result<SafetensorsHeader> header = parse_safetensors_header(json, size - file.data_at_, path);
  if (!header) return header.error();
  file.header_ = *std::move(header);
  for (size_t i = 0; i < file.header_.tensors.size(); ++i) {
    file.by_name_[file.header_.tensors[i].name] = i;
  }
  return file;
}

const TensorInfo* SafetensorsFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.tensors[found->second];
}

Status SafetensorsFile::read_bytes(const TensorInfo& tensor, uint64_t first, uint64_t count,
                                   void* out) const {
  const uint64_t bytes = tensor.end - tensor.begin;
  if (first > bytes || count > bytes - first) return out_of_range(tensor, path_);
  return read_exactly(fd_.get(), data_at_ + tensor.begin + first, count, out, path_);
}

Status SafetensorsFile::read_elements(const TensorInfo& tensor, uint64_t first, uint64_t count,
                                      float* out) const {
  if (!is_trainable(tensor.dtype)) {
    return Error{"tensor \"" + tensor.name + "\" is " + std::string(dtype_word(tensor.dtype)),
                 path_, "weights must be F32, F16 or BF16; convert the checkpoint first"};
  }
  const uint64_t size = dtype_bytes(tensor.dtype);
  const uint64_t total = (tensor.end - tensor.begin) / size;
  if (first > total || count > total - first) return out_of_range(tensor, path_);
  if (tensor.dtype == DType::f32) return read_bytes(tensor, first * size, count * size, out);
  std::vector<char> buffer(std::min(count * size, kBufferBytes));
  for (uint64_t done = 0; done < count;) {
    const uint64_t n = std::min<uint64_t>(count - done, kBufferBytes / size);
    Status read = read_bytes(tensor, (first + done) * size, n * size, buffer.data());
    if (!read) return read;
    to_f32(tensor.dtype, buffer.data(), out + done, n);
    done += n;
  }
  return success();
}

Status SafetensorsFile::read_rows(const TensorInfo& tensor, uint64_t first_row, uint64_t rows,
                                  float* out) const {
  return read_block(tensor, first_row, rows, 0, tensor.columns(), out);
}

Status SafetensorsFile::read_block(const TensorInfo& tensor, uint64_t first_row, uint64_t rows,
                                   uint64_t first_column, uint64_t columns, float* out) const {
  const uint64_t width = tensor.columns();
  if (first_row > tensor.rows() || rows > tensor.rows() - first_row || first_column > width ||
      columns > width - first_column) {
    return out_of_range(tensor, path_);
  }
  if (columns == width) return read_elements(tensor, first_row * width, rows * width, out);
  // Whole rows are read and the columns picked out of them: one pass over the disk in order is
  // cheaper than a read for each row.
  const uint64_t rows_at_once = std::max<uint64_t>(1, kBufferBytes / sizeof(float) / width);
  std::vector<float> buffer(std::min(rows, rows_at_once) * width);
  for (uint64_t done = 0; done < rows;) {
    const uint64_t n = std::min(rows - done, rows_at_once);
    Status read = read_elements(tensor, (first_row + done) * width, n * width, buffer.data());
    if (!read) return read;
    for (uint64_t row = 0; row < n; ++row) {
      const float* from = buffer.data() + row * width + first_column;
      std::copy(from, from + columns, out + (done + row) * columns);
    }
    done += n;
  }
  return success();
}

struct SafetensorsWriter::State {
  std::string path;
  std::string temporary;
  Fd fd;
  std::vector<TensorSpec> tensors;
  std::vector<uint64_t> counts;  // elements of each
  size_t at = 0;                 // the tensor that is being written
  uint64_t done = 0;             // elements of it
  std::vector<char> buffer;

  void skip_full() {
    while (at < counts.size() && done == counts[at]) {
      ++at;
      done = 0;
    }
  }
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;

SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (state_ && state_->fd) unlink(state_->temporary.c_str());
}

Result<SafetensorsWriter> SafetensorsWriter::open(
    const std::string& path, std::vector<TensorSpec> tensors,
    const std::map<std::string, std::string>& metadata) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->temporary = path + ".tmp." + std::to_string(getpid());
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::map<std::string_view, int> seen;
  uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    if (!is_trainable(tensor.dtype)) {
      return Error{
          "cannot write \"" + tensor.name + "\" as " + std::string(dtype_word(tensor.dtype)), path,
          ""};
    }
    if (tensor.name == "__metadata__" || ++seen[tensor.name] > 1) {
      return Error{"two tensors would be called \"" + tensor.name + "\"", path, ""};
    }
    std::optional<uint64_t> count = 1;
    for (const int64_t dimension : tensor.shape) {
      if (dimension < 0) count.reset();
      if (count) count = product(*count, static_cast<uint64_t>(dimension));
    }
    const std::optional<uint64_t> bytes =
        count ? product(*count, dtype_bytes(tensor.dtype)) : std::nullopt;
    if (!bytes) return Error{"tensor \"" + tensor.name + "\" has an impossible shape", path, ""};
    state->counts.push_back(*count);
    header[tensor.name] = {{"dtype", dtype_word(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + *bytes}}};
    offset += *bytes;
  }
  std::string json = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8
  if (json.size() > kMaxSafetensorsHeaderBytes) {
    return Error{"the header would be larger than readers accept", path, "write several files"};
  }
  state->tensors = std::move(tensors);
  state->fd = Fd(::open(state->temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!state->fd) return write_error(state->temporary);
  const uint64_t header_bytes = json.size();
  std::string start(sizeof header_bytes, '\0');
  memcpy(start.data(), &header_bytes, sizeof header_bytes);
  SafetensorsWriter writer(std::move(state));
  if (!write_all(writer.state_->fd.get(), start + json)) return write_error(path);
  writer.state_->skip_full();
  return writer;
}

Status SafetensorsWriter::append(const float* values, uint64_t count) {
  State& state = *state_;
  while (count > 0) {
    if (state.at == state.tensors.size()) {
      return Error{"more values than the file's tensors hold", state.path, ""};
    }
    const DType dtype = state.tensors[state.at].dtype;
    const uint64_t size = dtype_bytes(dtype);
    const uint64_t n = std::min({count, state.counts[state.at] - state.done, kBufferBytes / size});
    state.buffer.resize(kBufferBytes);
    from_f32(dtype, values, state.buffer.data(), n);
    if (!write_all(state.fd.get(), {state.buffer.data(), n * size})) return write_error(state.path);
    values += n;
    count -= n;
    state.done += n;
    state.skip_full();
  }
  return success();
}

Status SafetensorsWriter::finish() {
  State& state = *state_;
  if (state.at != state.tensors.size()) {
    return Error{"tensor \"" + state.tensors[state.at].name + "\" was not written whole",
                 state.path, ""};
  }
  if (fsync(state.fd.get()) != 0) return write_error(state.path);
  if (rename(state.temporary.c_str(), state.path.c_str()) != 0) return write_error(state.path);
  state.fd.reset();
  const Fd folder(::open(parent_of(state.path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || fsync(folder.get()) != 0) return write_error(parent_of(state.path));
  return success();
}

}  // namespace ezpz::train
