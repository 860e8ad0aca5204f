#include "bench/metrics_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/file.h"
#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr size_t kPiece_bytes = 1U << 20U;
constexpr size_t kLongestLine_bytes = 1U << 20U;
constexpr size_t kSniff_bytes = 1U << 16U;

struct File {
  std::string name;
  int64_t rank = 0;
};

Error system_error(const std::string& what, const std::string& where) {
  return Error{what + ": " + strerrordesc_np(errno), where, ""};
}

// Regular files: opening a pipe that somebody left there would wait for ever.
Result<std::vector<std::string>> jsonl_files(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return system_error("cannot read the directory", directory);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir.get())) {
    std::string name = entry->d_name;
    struct stat info {};
    if (name.ends_with(".jsonl") && stat(join({directory, name}, "/").c_str(), &info) == 0 &&
        S_ISREG(info.st_mode)) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The rank of "metrics-<rank>.jsonl".
std::optional<int64_t> rank_of(const std::string& name) {
  constexpr std::string_view begin = "metrics-";
  constexpr std::string_view end = ".jsonl";
  if (name.compare(0, begin.size(), begin) != 0) return std::nullopt;
  const std::optional<long> rank = parse_int(
      std::string_view(name).substr(begin.size(), name.size() - begin.size() - end.size()));
  return rank && *rank >= 0 ? std::optional<int64_t>(*rank) : std::nullopt;
}

// What a file of another name holds shows in its first lines: the time of the first record of
// metrics, or nothing when there is none.
std::optional<double> sniff(const std::string& path) {
  const Result<std::string> begin = read_file(path, kSniff_bytes);
  if (!begin) return std::nullopt;
  for (const std::string& line : split_lines(*begin)) {
    MetricsRecord record;
    const LineKind kind = read_metrics_line(line, &record);
    if (kind == LineKind::step || kind == LineKind::other) return record.time_s.value_or(0);
  }
  return std::nullopt;
}

std::vector<File> choose_files(const std::string& directory, const std::vector<std::string>& names,
                               std::string* layout) {
  std::vector<File> files;
  for (const std::string& name : names) {
    if (const auto rank = rank_of(name)) files.push_back({name, *rank});
  }
  if (!files.empty()) {
    *layout = "metrics-<rank>.jsonl";
    std::sort(files.begin(), files.end(),
              [](const File& a, const File& b) { return a.rank < b.rank; });
    return files;
  }
  if (std::find(names.begin(), names.end(), "metrics.jsonl") != names.end()) {
    *layout = "metrics.jsonl";
    return {{"metrics.jsonl", 0}};
  }
  *layout = "<run_id>.jsonl";
  // Of several runs the one that began later went on from the one before.
  std::vector<std::pair<double, std::string>> runs;
  for (const std::string& name : names) {
    if (const auto time_s = sniff(join({directory, name}, "/"))) runs.emplace_back(*time_s, name);
  }
  std::sort(runs.begin(), runs.end());
  for (const auto& run : runs) files.push_back({run.second, 0});
  return files;
}

Status read_one(const std::string& path, int64_t rank, std::string* piece, MetricsFeed* feed) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot read", path);
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  feed->begin_file(rank);
  while (true) {
    const ssize_t n = read(fd.get(), piece->data(), piece->size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read", path);
    if (n == 0) break;
    feed->feed({piece->data(), static_cast<size_t>(n)});
  }
  feed->end_file();
  return success();
}

Result<MetricsReading> read_files(const std::string& directory,
                                  const std::vector<std::string>& names) {
  MetricsReading reading;
  MetricsFeed feed(&reading);
  std::string piece(kPiece_bytes, '\0');
  for (const File& file : choose_files(directory, names, &reading.layout)) {
    if (Status read = read_one(directory + "/" + file.name, file.rank, &piece, &feed); !read) {
      return read.error();
    }
    reading.files.push_back(file.name);
  }
  return reading;
}

}  // namespace

void MetricsFeed::begin_file(int64_t file_rank) {
  file_rank_ = file_rank;
  carry_.clear();
  overlong_ = false;
}

void MetricsFeed::feed(std::string_view bytes) {
  reading_->bytes += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const auto* const newline = static_cast<const char*>(memchr(bytes.data(), '\n', bytes.size()));
    if (newline == nullptr) {
      overlong_ = overlong_ || carry_.size() + bytes.size() > kLongestLine_bytes;
      if (overlong_) {
        carry_.clear();
      } else {
        carry_.append(bytes);
      }
      return;
    }
    const auto length = static_cast<size_t>(newline - bytes.data());
    if (overlong_) {
      ++reading_->damaged;
      overlong_ = false;
    } else if (carry_.empty()) {
      take_line(bytes.substr(0, length), true);
    } else {
      carry_.append(bytes.substr(0, length));
      take_line(carry_, true);
    }
    carry_.clear();
    bytes.remove_prefix(length + 1);
  }
}

void MetricsFeed::end_file() {
  if (overlong_) {
    ++reading_->truncated;
  } else if (!carry_.empty()) {
    take_line(carry_, false);
  }
  carry_.clear();
  overlong_ = false;
}

void MetricsFeed::take_line(std::string_view line, bool whole) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  switch (read_metrics_line(line, &record_)) {
    case LineKind::step:
      // Whole JSON without its newline: only the newline was lost.
      ++reading_->records;
      if (record_.has_nan) ++reading_->nan;
      take_step(record_, record_.rank.value_or(file_rank_));
      break;
    case LineKind::other:
      ++reading_->others;
      break;
    case LineKind::foreign:
      ++reading_->foreign;
      break;
    case LineKind::damaged:
      ++(whole ? reading_->damaged : reading_->truncated);
      break;
  }
}

void MetricsFeed::take_step(const MetricsRecord& record, int64_t rank) {
  const bool first_of_all = reading_->ranks.empty();
  RankSeen& seen = reading_->ranks[rank];
  ++seen.records;
  seen.last_iter = record.step.iter;
  if (!first_of_all && rank > reading_->rank) return;
  std::vector<StepMetrics>& steps = reading_->steps;
  if (first_of_all || rank < reading_->rank) {
    reading_->rank = rank;
    steps.clear();
    reading_->redone = 0;
    reading_->clock_back = 0;
    reading_->first_time_s.reset();
    reading_->last_time_s.reset();
    previous_time_s_.reset();
  }
  if (record.time_s) {
    if (previous_time_s_ && *record.time_s < *previous_time_s_) ++reading_->clock_back;
    previous_time_s_ = record.time_s;
    if (!reading_->first_time_s) reading_->first_time_s = record.time_s;
    reading_->last_time_s =
        std::max(*record.time_s, reading_->last_time_s.value_or(*record.time_s));
  }
  if (!steps.empty() && record.step.iter <= steps.back().iter) {
    const auto again =
        std::lower_bound(steps.begin(), steps.end(), record.step.iter,
                         [](const StepMetrics& step, int64_t iter) { return step.iter < iter; });
    reading_->redone += steps.end() - again;
    steps.erase(again, steps.end());
  }
  steps.push_back(record.step);
  // A step that took no time, or less than none, was not measured: somebody's clock was set back.
  if (!(steps.back().dt_s > 0)) steps.back().dt_s = not_measured;
}

std::vector<int> MetricsReading::missing_ranks(std::optional<int> world_size) const {
  std::vector<int> missing;
  // Programs in which only rank 0 writes are common, and nothing is missing there.
  if (ranks.size() < 2) return missing;
  constexpr int64_t kMostRanks = 1'000'000;
  const int64_t above =
      std::min(kMostRanks, std::max<int64_t>(ranks.rbegin()->first + 1, world_size.value_or(0)));
  for (int64_t rank = 0; rank < above; ++rank) {
    if (ranks.count(rank) == 0) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

int64_t MetricsReading::gaps() const {
  if (steps.empty()) return 0;
  return steps.back().iter - steps.front().iter + 1 - static_cast<int64_t>(steps.size());
}

std::string MetricsReading::losses() const {
  std::vector<std::string> parts;
  const auto add = [&parts](int64_t count, const char* one, const char* many) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, count == 1 ? one : many));
  };
  add(truncated, "truncated last line", "truncated last lines");
  add(damaged, "damaged line", "damaged lines");
  add(foreign, "line that is no record of metrics", "lines that are no records of metrics");
  return join(parts, ", ");
}

Result<MetricsReading> read_metrics(const std::string& directory) {
  Result<std::vector<std::string>> names = jsonl_files(directory);
  if (!names) return names.error();
  Result<MetricsReading> reading = read_files(directory, *names);
  if (reading && reading->steps.empty()) {
    const Result<std::vector<std::string>> below = jsonl_files(directory + "/metrics");
    if (below) reading = read_files(directory + "/metrics", *below);
  }
  if (!reading) return reading.error();
  if (reading->files.empty()) {
    return Error{
        "no metrics here", directory,
        "looked for metrics-<rank>.jsonl, metrics.jsonl and <run_id>.jsonl, also in metrics/"};
  }
  if (reading->steps.empty()) {
    const std::string losses = reading->losses();
    return Error{"no step in " + join(reading->files, ", "), directory,
                 losses.empty() ? "a record needs train/iter" : losses};
  }
  return reading;
}

}  // namespace ezpz::bench
