#include "train/checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/json.h"
#include "train/weights/strict_json.h"

namespace ezpz::train {
namespace {

constexpr const char* kFormat = "ezpz-train checkpoint 1";

TensorInfo as_info(const TensorSpec& spec) { return {spec.name, spec.dtype, spec.shape, 0, 0}; }

Json part_json(const StoredPart& part) {
  return Json{{"tensor", part.tensor},
              {"block", {part.first_row, part.rows, part.first_column, part.columns}},
              {"range", {part.first, part.count}},
              {"offset", part.offset},
              {"crc32c", part.checksums}};
}

Json file_json(const ShardFile& file) {
  Json parts = Json::array();
  for (const StoredPart& part : file.parts) parts.push_back(part_json(part));
  return Json{{"name", file.name}, {"bytes", file.bytes}, {"parts", parts}};
}

// count whole numbers under key.
bool read_numbers(const StrictJson& json, const char* key, size_t count,
                  std::vector<uint64_t>* out) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() || found->size() != count) return false;
  out->clear();
  for (const StrictJson& number : *found) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > INT64_MAX) return false;
    out->push_back(number.get<uint64_t>());
  }
  return true;
}

Result<ShardFile> read_file_json(const StrictJson& json, const std::string& where) {
  const Error wrong{"the description of a shard file makes no sense", where, ""};
  if (!json.is_object()) return wrong;
  ShardFile file;
  file.name = json_text(json, "name").value_or("");
  if (file.name.empty() || file.name.find('/') != std::string::npos || file.name[0] == '.' ||
      file.name.find('\0') != std::string::npos) {
    return wrong;
  }
  const auto bytes = json_uint(json, "bytes");
  const auto parts = json.find("parts");
  if (!bytes || parts == json.end() || !parts->is_array()) return wrong;
  file.bytes = *bytes;
  for (const StrictJson& entry : *parts) {
    if (!entry.is_object()) return wrong;
    StoredPart part;
    std::vector<uint64_t> block;
    std::vector<uint64_t> range;
    const auto name = json_text(entry, "tensor");
    const auto offset = json_uint(entry, "offset");
    const auto checksums = entry.find("crc32c");
    if (!name || !offset || !read_numbers(entry, "block", 4, &block) ||
        !read_numbers(entry, "range", 2, &range) || checksums == entry.end() ||
        !checksums->is_array()) {
      return wrong;
    }
    part.tensor = *name;
    part.first_row = block[0];
    part.rows = block[1];
    part.first_column = block[2];
    part.columns = block[3];
    part.first = range[0];
    part.count = range[1];
    part.offset = *offset;
    for (const StrictJson& sum : *checksums) {
      if (!sum.is_number_unsigned() || sum.get<uint64_t>() > UINT32_MAX) return wrong;
      part.checksums.push_back(sum.get<uint32_t>());
    }
    file.parts.push_back(std::move(part));
  }
  return file;
}

Result<TensorSpec> read_tensor(const StrictJson& json, const std::string& where) {
  const Error wrong{"the description of a tensor makes no sense", where, ""};
  const auto name = json_text(json, "name");
  const auto dtype = parse_dtype(json_text(json, "dtype").value_or(""));
  if (!name || !dtype || !json.contains("shape") || !json["shape"].is_array()) return wrong;
  TensorSpec tensor{*name, *dtype, {}};
  uint64_t elements = dtype_bytes(*dtype);
  for (const StrictJson& dimension : json["shape"]) {
    if (!dimension.is_number_unsigned() || dimension.get<uint64_t>() == 0 ||
        __builtin_mul_overflow(elements, dimension.get<uint64_t>(), &elements) ||
        elements > INT64_MAX) {
      return wrong;
    }
    tensor.shape.push_back(dimension.get<int64_t>());
  }
  return tensor;
}

Status check_part(const Manifest& manifest, const ShardFile& file, StoredPart* part,
                  const std::string& where) {
  const TensorSpec* tensor = manifest.find(part->tensor);
  if (tensor == nullptr) {
    return Error{"a part of a tensor \"" + part->tensor + "\" that does not exist", where, ""};
  }
  if (Status inside = normalize_part(*tensor, part, where); !inside) return inside;
  const uint64_t bytes = part->count * dtype_bytes(tensor->dtype);
  if (part->offset > file.bytes || bytes > file.bytes - part->offset ||
      part->checksums.size() != (bytes + kChecksumBytes - 1) / kChecksumBytes) {
    return Error{"a part of \"" + part->tensor + "\" does not lie in " + file.name, where, ""};
  }
  return success();
}

}  // namespace

const TensorSpec* Manifest::find(std::string_view tensor) const {
  for (const TensorSpec& spec : tensors) {
    if (spec.name == tensor) return &spec;
  }
  return nullptr;
}

Status normalize_part(const TensorSpec& tensor, Part* part, const std::string& where) {
  const TensorInfo info = as_info(tensor);
  if (part->rows == 0) {
    part->first_row = part->first_column = 0;
    part->rows = info.rows();
    part->columns = info.columns();
  }
  const bool inside = part->first_row <= info.rows() &&
                      part->rows <= info.rows() - part->first_row &&
                      part->first_column <= info.columns() &&
                      part->columns <= info.columns() - part->first_column &&
                      part->first <= part->rows * part->columns &&
                      part->count <= part->rows * part->columns - part->first;
  if (inside) return success();
  return Error{
      "a part that is not within tensor \"" + tensor.name + "\" " + shape_text(tensor.shape), where,
      ""};
}

std::string format_shard_file(const ShardFile& file) { return dump(file_json(file)) + "\n"; }

Result<ShardFile> parse_shard_file(std::string_view text, const std::string& where) {
  const Result<StrictJson> json = parse_strict_json(text, where);
  if (!json) return json.error();
  return read_file_json(*json, where);
}

std::string format_manifest(const Manifest& manifest) {
  Json tensors = Json::array();
  for (const TensorSpec& tensor : manifest.tensors) {
    tensors.push_back(
        Json{{"name", tensor.name}, {"dtype", dtype_word(tensor.dtype)}, {"shape", tensor.shape}});
  }
  Json files = Json::array();
  for (const ShardFile& file : manifest.files) files.push_back(file_json(file));
  return dump(Json{{"format", kFormat},
                   {"step", manifest.step},
                   {"sequence", manifest.sequence},
                   {"world_size", manifest.world_size},
                   {"state", manifest.state},
                   {"tensors", tensors},
                   {"files", files}}) +
         "\n";
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& where) {
  const Result<StrictJson> parsed = parse_strict_json(text, where);
  if (!parsed) return parsed.error();
  const StrictJson& json = *parsed;
  if (json_text(json, "format").value_or("") != kFormat) {
    return Error{"not a manifest of this version", where, ""};
  }
  const auto step = json_uint(json, "step");
  const auto sequence = json_uint(json, "sequence");
  const auto world_size = json_uint(json, "world_size");
  const auto state = json_text(json, "state");
  const auto tensors = json.find("tensors");
  const auto files = json.find("files");
  if (!step || *step > INT64_MAX || !sequence || !world_size || *world_size > INT32_MAX || !state ||
      tensors == json.end() || !tensors->is_array() || files == json.end() || !files->is_array()) {
    return Error{"the manifest lacks what it must say", where, ""};
  }
  Manifest manifest;
  manifest.step = static_cast<int64_t>(*step);
  manifest.sequence = *sequence;
  manifest.world_size = static_cast<int>(*world_size);
  manifest.state = *state;
  for (const StrictJson& entry : *tensors) {
    Result<TensorSpec> tensor = read_tensor(entry, where);
    if (!tensor) return tensor.error();
    manifest.tensors.push_back(*std::move(tensor));
  }
  for (const StrictJson& entry : *files) {
    Result<ShardFile> file = read_file_json(entry, where);
    if (!file) return file.error();
    for (StoredPart& part : file->parts) {
      if (Status fine = check_part(manifest, *file, &part, where); !fine) return fine.error();
    }
    manifest.files.push_back(*std::move(file));
  }
  return manifest;
}

Status check_coverage(const Manifest& manifest, const std::string& where) {
  using Rectangle = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;
  std::map<std::string, std::map<Rectangle, std::vector<std::pair<uint64_t, uint64_t>>>> parts;
  std::set<std::string> names;
  for (const ShardFile& file : manifest.files) {
    if (!names.insert(file.name).second) return Error{"a file is named twice", where, ""};
    for (const StoredPart& part : file.parts) {
      if (part.count == 0) continue;
      parts[part.tensor][{part.first_row, part.rows, part.first_column, part.columns}].emplace_back(
          part.first, part.count);
    }
  }
  names.clear();
  for (const TensorSpec& tensor : manifest.tensors) {
    if (!names.insert(tensor.name).second) return Error{"a tensor is named twice", where, ""};
    const auto wrong = [&](const std::string& what) {
      return Error{"tensor \"" + tensor.name + "\" " + what, where, ""};
    };
    uint64_t total = 0;
    auto& rectangles = parts[tensor.name];
    for (auto& [rectangle, ranges] : rectangles) {
      const auto& [row, rows, column, columns] = rectangle;
      for (const auto& [other, unused] : rectangles) {
        if (other == rectangle) break;  // those before it were compared already
        const auto& [row2, rows2, column2, columns2] = other;
        if (row < row2 + rows2 && row2 < row + rows && column < column2 + columns2 &&
            column2 < column + columns) {
          return wrong("is saved twice in part");
        }
      }
      std::sort(ranges.begin(), ranges.end());
      uint64_t end = 0;
      for (const auto& [first, count] : ranges) {
        if (first < end) return wrong("is saved twice in part");
        end = first + count;
        total += count;
      }
    }
    if (total != as_info(tensor).elements()) return wrong("is not saved whole");
  }
  return success();
}

}  // namespace ezpz::train
