#include "train/checkpoint/directory.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "train/checkpoint/crc32c.h"

namespace ezpz::train {
namespace {

constexpr size_t kMaxManifestBytes = 1U << 30U;

bool is_ours(const std::string& name) {
  if (name == "manifest.json" || name == "manifest.crc32c") return true;
  const std::string prefix = "shard-";
  if (name.compare(0, prefix.size(), prefix) != 0) return false;
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return false;
  const std::string digits = name.substr(prefix.size(), dot - prefix.size());
  const std::string end = name.substr(dot);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos &&
         (end == ".bin" || end == ".json");
}

std::string numbered(const char* format, long long number) {
  char name[64];
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): the formats stand below
  snprintf(name, sizeof name, format, number);
  return name;
}

}  // namespace

std::string path_in(const std::string& dir, const std::string& name) {
  std::string path = dir;
  path += '/';
  path += name;
  return path;
}

std::string step_name(int64_t step) { return numbered("step-%08lld", step); }

std::optional<int64_t> parse_step_name(const std::string& name) {
  if (name.compare(0, 5, "step-") != 0) return std::nullopt;
  const std::optional<long> step = parse_int(name.substr(5));
  if (!step || *step < 0 || step_name(*step) != name) return std::nullopt;
  return *step;
}

std::string shard_name(int rank) { return numbered("shard-%05lld.bin", rank); }

std::string description_name(int rank) { return numbered("shard-%05lld.json", rank); }

std::vector<std::string> list_names(const std::string& dir) {
  std::vector<std::string> names;
  if (DIR* folder = opendir(dir.c_str()); folder != nullptr) {
    while (const dirent* entry = readdir(folder)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    closedir(folder);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Manifest> read_manifest(const std::string& dir) {
  const std::string path = dir + "/manifest.json";
  Result<std::string> text = read_file(path, kMaxManifestBytes);
  if (!text) return text.error();
  Result<std::string> sum = read_file(dir + "/manifest.crc32c", 64);
  if (!sum) return sum.error();
  if (*sum != std::to_string(crc32c(0, text->data(), text->size())) + "\n") {
    return Error{"the checksum of the manifest is wrong", path, ""};
  }
  Result<Manifest> manifest = parse_manifest(*text, path);
  if (!manifest) return manifest;
  for (const ShardFile& file : manifest->files) {
    const std::string shard = path_in(dir, file.name);
    struct stat info {};
    if (stat(shard.c_str(), &info) != 0) return Error{"a shard is missing", shard, ""};
    if (static_cast<uint64_t>(info.st_size) != file.bytes) {
      return Error{"a shard has " + std::to_string(info.st_size) + " bytes, not " +
                       std::to_string(file.bytes),
                   shard, ""};
    }
  }
  if (Status covered = check_coverage(*manifest, path); !covered) return covered.error();
  return manifest;
}

bool remove_checkpoint(const std::string& dir, Disk& disk) {
  for (const std::string& name : list_names(dir)) {
    if (is_ours(name)) disk.remove_file(path_in(dir, name));
  }
  return disk.remove_directory(dir) == 0;
}

}  // namespace ezpz::train
