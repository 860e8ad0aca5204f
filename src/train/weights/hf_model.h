// A folder that holds a Hugging Face Llama: config.json and model.safetensors, or several files and
// model.safetensors.index.json.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/weights/hf_config.h"
#include "train/weights/safetensors.h"

namespace ezpz::train {

// model.safetensors.index.json: which file holds which tensor.
struct HfIndex {
  uint64_t total_size = 0;  // bytes of all tensors; 0 when the file does not say
  std::map<std::string, std::string> weight_map;  // tensor -> file name, in the same folder
};

Result<HfIndex> parse_hf_index(std::string_view json, const std::string& where);
std::string format_hf_index(const HfIndex&);

// Opened, and checked to be whole: every tensor that the configuration asks for is there, with its
// shape. Weights are read as slices, under the trainer's names (train/weights/names.h).
class HfModel {
 public:
  static Result<HfModel> open(const std::string& dir);

  [[nodiscard]] const HfConfig& config() const { return config_; }
  // The tensor and the file to read it from. With tied embeddings "output" is "embed". Null when
  // there is no such tensor.
  struct Where {
    const SafetensorsFile* file = nullptr;
    const TensorInfo* tensor = nullptr;
    explicit operator bool() const { return tensor != nullptr; }
  };
  [[nodiscard]] Where find(std::string_view trainer_name) const;

  // find() and SafetensorsFile::read_block / read_elements in one.
  Status read_block(std::string_view trainer_name, uint64_t first_row, uint64_t rows,
                    uint64_t first_column, uint64_t columns, float* out) const;
  Status read_elements(std::string_view trainer_name, uint64_t first, uint64_t count,
                       float* out) const;

 private:
  std::string dir_;
  HfConfig config_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
};

// Writes such a folder, tensor after tensor in the order of model_tensors(config, dtype), cut into
// files of at most max_file_bytes (one tensor at least). The folder appears under its name when
// finish() succeeded; a writer that is dropped before leaves nothing. dir must not exist, or be
// empty.
class HfModelWriter {
 public:
  static Result<HfModelWriter> open(const std::string& dir, const HfConfig& config, DType dtype,
                                    uint64_t max_file_bytes = 5'000'000'000);
  HfModelWriter(HfModelWriter&&) noexcept;
  ~HfModelWriter();

  // The next values, of any number of tensors or of a part of one.
  Status append(const float* values, uint64_t count);
  // Another file of the folder (tokenizer.json, ...).
  Status add_file(const std::string& name, std::string_view content);
  Status finish();

 private:
  struct State;
  explicit HfModelWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ezpz::train
