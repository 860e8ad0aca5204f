// The safetensors file: eight bytes of header length, a JSON header, then the tensors' bytes
// without holes. A header is believed only after every claim in it was checked against the file's
// size.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "train/weights/dtype.h"

namespace ezpz::train {

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // empty: a scalar
  uint64_t begin = 0;          // bytes, from the start of the data
  uint64_t end = 0;

  [[nodiscard]] uint64_t elements() const;  // of shape; the readers make sure that it fits
  // The tensor as a matrix: the first dimension, and the product of the others.
  [[nodiscard]] uint64_t rows() const;
  [[nodiscard]] uint64_t columns() const;
};

std::string shape_text(const std::vector<int64_t>& shape);  // "[2048, 512]"

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;              // by position in the file
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;  // the format's own limit

// json: the header's text; data_bytes: what follows it in the file.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                                   const std::string& where);

// An open file. Nothing but the header is held in memory; every read is a pread of what was asked
// for, so that a file that shrinks is an error and not a SIGBUS. Reads may come from many threads.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const {
    return header_.metadata;
  }
  // Null when the file has no such tensor. Valid as long as the file is.
  [[nodiscard]] const TensorInfo* find(const std::string& name) const;

  // `count` elements from `first` on, in the tensor's own (row-major) order, as floats. F32, F16
  // and BF16 only.
  Status read_elements(const TensorInfo&, uint64_t first, uint64_t count, float* out) const;
  // Rows first_row .. first_row + rows: a slice for column parallelism or for a flat shard.
  Status read_rows(const TensorInfo&, uint64_t first_row, uint64_t rows, float* out) const;
  // A rectangle of the matrix, densely into out: a slice for row parallelism.
  Status read_block(const TensorInfo&, uint64_t first_row, uint64_t rows, uint64_t first_column,
                    uint64_t columns, float* out) const;
  // The tensor's bytes as they lie in the file.
  Status read_bytes(const TensorInfo&, uint64_t first, uint64_t count, void* out) const;

 private:
  std::string path_;
  Fd fd_;
  uint64_t data_at_ = 0;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> by_name_;
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

// Writes a file tensor by tensor, in the order given to open(), holding none of them. It appears
// under its name when finish() succeeded (temp file, fsync, rename, fsync of the folder); a writer
// that is dropped before leaves nothing behind.
class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> open(const std::string& path, std::vector<TensorSpec> tensors,
                                        const std::map<std::string, std::string>& metadata = {
                                            {"format", "pt"}});
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();

  // The next `count` elements, converted to the tensor's type; may end within a tensor, or go over
  // the end of one into the next of the same type.
  Status append(const float* values, uint64_t count);
  Status finish();

 private:
  struct State;
  explicit SafetensorsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ezpz::train
