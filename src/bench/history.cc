#include "bench/history.h"

#include <dirent.h>
#include <errno.h>
#include <fmt/core.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr int kDepth = 3;
constexpr size_t kMostFolders = 100'000;

std::string base_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Links are not followed: two that point at each other would never end.
std::vector<std::string> folders_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return names;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    struct stat info {};
    if (name[0] != '.' && lstat(join({directory, name}, "/").c_str(), &info) == 0 &&
        S_ISDIR(info.st_mode)) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

void search(const std::string& root, const std::string& below, int depth, size_t* left,
            std::vector<PastRun>* runs) {
  if (*left == 0) return;
  --*left;
  Result<PastRun> run = read_past_run(below.empty() ? root : root + "/" + below);
  if (run) {
    run->path = below.empty() ? "." : below;
    runs->push_back(std::move(*run));
    return;
  }
  if (depth == 0) return;
  const std::string here = below.empty() ? root : root + "/" + below;
  for (const std::string& name : folders_in(here)) {
    search(root, below.empty() ? name : join({below, name}, "/"), depth - 1, left, runs);
  }
}

void note_doubts(const MetricsReading& metrics, PastRun* run) {
  const Speeds& speeds = run->speeds;
  if (speeds.mfu_percent && *speeds.mfu_percent > 100)
    run->doubts.emplace_back("MFU above the peak");
  if (speeds.tokens_per_s && speeds.tokens_per_s_per_gpu && *speeds.tokens_per_s_per_gpu > 0 &&
      run->gpus) {
    const double gpus = *speeds.tokens_per_s / *speeds.tokens_per_s_per_gpu;
    if (std::max(gpus, static_cast<double>(*run->gpus)) >
        1.02 * std::min(gpus, static_cast<double>(*run->gpus))) {
      run->doubts.push_back(
          fmt::format("train/tps is {:.4g} times train/tps_per_gpu, not {}", gpus, *run->gpus));
    }
  }
  if (const std::string losses = metrics.losses(); !losses.empty()) run->doubts.push_back(losses);
}

}  // namespace

std::string label_of_command(const std::vector<std::string>& command) {
  if (command.empty()) return "";
  const Said said = what_command_says(command);
  const auto value = [&said](const char* name) {
    const auto found = said.known.find(name);
    return found == said.known.end() ? std::string() : found->second;
  };
  if (value("model").empty()) {
    // The script and not its interpreter.
    for (const std::string& word : command) {
      const std::string name = base_name(word);
      const bool interpreter = name.rfind("python", 0) == 0 || name[0] == '-' || name.empty();
      if (!interpreter) return printable(name, 60);
    }
    return printable(base_name(command[0]), 60);
  }
  std::string label = base_name(value("model"));
  if (!value("batch").empty()) label += "/bs" + value("batch");
  if (!value("seq").empty()) label += "/seq" + value("seq");
  if (!value("tp").empty()) label += "/tp" + value("tp");
  if (!value("lora_rank").empty()) {
    label += "/lora-r" + value("lora_rank") + "-" +
             (value("lora_target").empty() ? "attn" : value("lora_target"));
  }
  return printable(label, 80);
}

Result<PastRun> read_past_run(const std::string& directory) {
  const Provenance provenance = find_provenance(directory);
  const Result<MetricsReading> metrics = read_metrics(directory);
  if (!provenance.run && !metrics) return Error{"nothing here tells of a run", directory, ""};
  PastRun run;
  run.path = directory;
  run.system = printable(provenance.system, 60);
  run.nodes = provenance.nodes;
  run.gpus = provenance.gpus;
  run.config = label_of_command(provenance.command);
  if (provenance.run) {
    const RunInfo& info = *provenance.run;
    run.when = printable(info.started, 40);
    if (run.system.empty()) run.system = printable(info.machine, 60);
    for (const std::string& host : info.hosts) run.hosts.push_back(printable(host, 80));
    run.status = info.end.empty() ? "no end recorded" : printable(info.end, 40);
    run.attempts = static_cast<int>(info.attempts.size());
    if (info.network.fallback)
      run.network = "fell back to " + printable(info.network.fallback_to, 40);
  }
  if (metrics) {
    run.steps = static_cast<int64_t>(metrics->steps.size());
    run.speeds = speeds_of(*metrics, 1, Reducer::median);
    if (run.when.empty() && metrics->first_time_s) run.when = iso8601(*metrics->first_time_s);
    note_doubts(*metrics, &run);
  }
  if (!run.network.empty()) run.doubts.push_back("network " + run.network);
  return run;
}

Result<std::vector<PastRun>> read_history(const std::string& directory) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) {
    return Error{std::string("cannot read the directory: ") + strerrordesc_np(errno), directory,
                 ""};
  }
  if (!S_ISDIR(info.st_mode)) return Error{"not a directory", directory, ""};
  std::vector<PastRun> runs;
  size_t left = kMostFolders;
  search(directory, "", kDepth, &left, &runs);
  std::stable_sort(runs.begin(), runs.end(),
                   [](const PastRun& a, const PastRun& b) { return a.when < b.when; });
  return runs;
}

}  // namespace ezpz::bench
