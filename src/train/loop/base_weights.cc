#include "train/loop/base_weights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "train/loop/export.h"
#include "train/loop/own_parts.h"
#include "train/weights/hf_model.h"
#include "train/weights/names.h"
#include "train/weights/peft.h"

namespace ezpz::train {
namespace {

constexpr int64_t kElementsAtOnce = 4 << 20;

// Where values come from: elements of a matrix, or a rectangle of it.
struct Source {
  std::function<Status(uint64_t first, uint64_t count, float* out)> elements;
  std::function<Status(uint64_t row, uint64_t rows, uint64_t column, uint64_t columns, float* out)>
      block;
};

// A run of a rectangle that is narrower than its matrix: whole rows are read, and the run taken
// out.
Status read_columns(const Source& source, const OwnPart& part, float* out) {
  const Parameter& p = *part.parameter;
  const int64_t rows_at_once = std::max<int64_t>(1, kElementsAtOnce / p.columns);
  std::vector<float> block;
  int64_t at = part.first;
  const int64_t end = part.first + part.count;
  while (at < end) {
    const int64_t row = at / p.columns;
    const int64_t last_row = std::min((end - 1) / p.columns, row + rows_at_once - 1);
    const int64_t rows = last_row - row + 1;
    block.resize(static_cast<size_t>(rows * p.columns));
    const Status read = source.block(
        static_cast<uint64_t>(p.first_row + row), static_cast<uint64_t>(rows),
        static_cast<uint64_t>(p.first_column), static_cast<uint64_t>(p.columns), block.data());
    if (!read) return read;
    const int64_t skip = at - row * p.columns;
    const int64_t n = std::min(end - at, rows * p.columns - skip);
    std::copy_n(block.begin() + skip, n, out + (at - part.first));
    at += n;
  }
  return success();
}

Status read_part(const Source& source, const OwnPart& part, Sharded* units) {
  const Parameter& p = *part.parameter;
  float* out = units->shards()[part.unit].parameters.data_ptr<float>() + part.in_shard;
  if (p.columns != p.whole_columns) return read_columns(source, part, out);
  return source.elements(static_cast<uint64_t>(p.first_row * p.whole_columns + part.first),
                         static_cast<uint64_t>(part.count), out);
}

}  // namespace

Status load_weights(const std::string& model_dir, Sharded* units) {
  const Result<HfModel> model = HfModel::open(model_dir);
  if (!model) return model.error();
  for (const OwnPart& part : own_parts(*units)) {
    const std::optional<std::string> name = trainer_name(part.parameter->name);
    if (!name) return Error{"no such weight in a Llama: " + part.parameter->name, model_dir, ""};
    const Source source{
        [&](uint64_t first, uint64_t count, float* out) {
          return model->read_elements(*name, first, count, out);
        },
        [&](uint64_t row, uint64_t rows, uint64_t column, uint64_t columns, float* out) {
          return model->read_block(*name, row, rows, column, columns, out);
        }};
    const Status read = read_part(source, part, units);
    if (!read) return read;
  }
  return success();
}

Status load_adapter(const TrainOptions& options, const std::string& adapter_dir,
                    Sharded* adapters) {
  const Result<HfConfig> model = hf_config_of(options);
  if (!model) return model.error();
  const Result<PeftAdapter> adapter = read_peft_adapter(adapter_dir, *model);
  if (!adapter) return adapter.error();
  const double scale = options.lora_alpha / static_cast<double>(options.lora.rank);
  if (adapter->config.r != options.lora.rank ||
      std::abs(adapter->config.scaling() - scale) > 1e-9 * scale) {
    return Error{"rank " + std::to_string(adapter->config.r) + " and alpha " +
                     std::to_string(adapter->config.lora_alpha) + " there",
                 "--lora-adapter " + adapter_dir, "give --lora-rank and --lora-alpha as there"};
  }
  for (const OwnPart& part : own_parts(*adapters)) {
    const TensorInfo* tensor =
        adapter->find(peft_trainer_name(part.parameter->name).value_or(part.parameter->name));
    if (tensor == nullptr) {
      return Error{"there is no " + part.parameter->name, "--lora-adapter " + adapter_dir,
                   "give --lora-target as there"};
    }
    const Source source{
        [&](uint64_t first, uint64_t count, float* out) {
          return adapter->file.read_elements(*tensor, first, count, out);
        },
        [&](uint64_t row, uint64_t rows, uint64_t column, uint64_t columns, float* out) {
          return adapter->file.read_block(*tensor, row, rows, column, columns, out);
        }};
    const Status read = read_part(source, part, adapters);
    if (!read) return read;
  }
  return success();
}

}  // namespace ezpz::train
