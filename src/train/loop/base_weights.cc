#include "train/loop/base_weights.h"

#include <algorithm>
#include <vector>

#include "train/loop/own_parts.h"
#include "train/weights/hf_model.h"
#include "train/weights/names.h"

namespace ezpz::train {
namespace {

constexpr int64_t kElementsAtOnce = 4 << 20;

// A run of a rectangle that is narrower than its matrix: whole rows are read, and the run taken
// out.
Status read_columns(const HfModel& model, const std::string& name, const OwnPart& part,
                    float* out) {
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
    const Status read = model.read_block(
        name, static_cast<uint64_t>(p.first_row + row), static_cast<uint64_t>(rows),
        static_cast<uint64_t>(p.first_column), static_cast<uint64_t>(p.columns), block.data());
    if (!read) return read;
    const int64_t skip = at - row * p.columns;
    const int64_t n = std::min(end - at, rows * p.columns - skip);
    std::copy_n(block.begin() + skip, n, out + (at - part.first));
    at += n;
  }
  return success();
}

}  // namespace

Status load_weights(const std::string& model_dir, Sharded* units) {
  const Result<HfModel> model = HfModel::open(model_dir);
  if (!model) return model.error();
  for (const OwnPart& part : own_parts(*units)) {
    const Parameter& p = *part.parameter;
    const std::optional<std::string> name = trainer_name(p.name);
    if (!name) return Error{"no such weight in a Llama: " + p.name, model_dir, ""};
    float* out = units->shards()[part.unit].parameters.data_ptr<float>() + part.in_shard;
    const Status read =
        p.columns == p.whole_columns
            ? model->read_elements(
                  *name, static_cast<uint64_t>(p.first_row * p.whole_columns + part.first),
                  static_cast<uint64_t>(part.count), out)
            : read_columns(*model, *name, part, out);
    if (!read) return read;
  }
  return success();
}

}  // namespace ezpz::train
