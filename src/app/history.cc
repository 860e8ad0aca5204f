// `ezpz history [DIR]`: the runs under a directory, and two of them side by side.
#include <fmt/core.h>

#include <stdlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/hostlist.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/columns.h"
#include "bench/history.h"
#include "bench/metrics_dir.h"
#include "bench/plot.h"

namespace ezpz::app {
namespace {

using bench::PastRun;
using Row = std::vector<std::string>;

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json to_json(const PastRun& run) {
  return {{"path", run.path},
          {"when", known(run.when)},
          {"system", known(run.system)},
          {"hosts", run.hosts},
          {"nodes", known(run.nodes)},
          {"gpus", known(run.gpus)},
          {"config", known(run.config)},
          {"status", known(run.status)},
          {"attempts", run.attempts > 0 ? Json(run.attempts) : Json(nullptr)},
          {"steps", run.steps},
          {"tokens_per_sec", known(run.speeds.tokens_per_s)},
          {"tokens_per_sec_per_gpu", known(run.speeds.tokens_per_s_per_gpu)},
          {"mfu", known(run.speeds.mfu_percent)},
          {"tflops", known(run.speeds.tflops_per_gpu)},
          {"final_loss", known(run.speeds.final_loss)},
          {"wall_time_sec", known(run.speeds.wall_time_s)},
          {"doubts", run.doubts}};
}

// What is not known is a dash.
std::string cell(const std::optional<double>& value, int decimals) {
  return value ? bench::short_number(*value, decimals) : "-";
}
std::string cell(const std::string& text) { return text.empty() ? "-" : text; }

std::string hosts_of(const PastRun& run) {
  constexpr size_t widest = 32;
  if (run.hosts.empty()) return run.nodes ? fmt::format("{} nodes", *run.nodes) : "-";
  const std::string list = compress_hostlist(run.hosts);
  return list.size() <= widest ? list : fmt::format("{} hosts", run.hosts.size());
}

std::string tell(const std::vector<PastRun>& runs) {
  std::vector<Row> rows = {{"when", "machine", "hosts", "config", "status", "attempts", "steps",
                            "tok/s", "MFU %", "run"}};
  for (const PastRun& run : runs) {
    rows.push_back({cell(run.when.substr(0, 19)), cell(run.system), hosts_of(run), cell(run.config),
                    cell(run.status), run.attempts > 0 ? std::to_string(run.attempts) : "-",
                    run.steps > 0 ? std::to_string(run.steps) : "-",
                    cell(run.speeds.tokens_per_s, 1), cell(run.speeds.mfu_percent, 2), run.path});
  }
  std::string text = bench::aligned(rows);
  for (const PastRun& run : runs) {
    for (const std::string& doubt : run.doubts) text += "doubt: " + run.path + ": " + doubt + "\n";
  }
  return text;
}

struct Measure {
  const char* name;
  std::optional<double> bench::Speeds::*value;
  int decimals;
};
constexpr Measure kMeasures[] = {
    {"tok/s", &bench::Speeds::tokens_per_s, 1},
    {"tok/s/GPU", &bench::Speeds::tokens_per_s_per_gpu, 2},
    {"MFU %", &bench::Speeds::mfu_percent, 3},
    {"TFLOP/s/GPU", &bench::Speeds::tflops_per_gpu, 3},
    {"final loss", &bench::Speeds::final_loss, 6},
    {"sum of steps s", &bench::Speeds::wall_time_s, 3},
};

std::optional<double> ratio(const Measure& measure, const PastRun& a, const PastRun& b) {
  const auto& first = a.speeds.*measure.value;
  const auto& second = b.speeds.*measure.value;
  if (!first || !second || *first == 0) return std::nullopt;
  return *second / *first;
}

std::string compare(const PastRun& a, const PastRun& b) {
  std::vector<Row> rows = {{"", "A", "B", "B/A"}};
  const auto words = [&rows](const char* name, const std::string& first,
                             const std::string& second) {
    rows.push_back({name, cell(first), cell(second), first == second ? "same" : "differs"});
  };
  words("run", a.path, b.path);
  words("when", a.when.substr(0, 19), b.when.substr(0, 19));
  words("machine", a.system, b.system);
  words("hosts", hosts_of(a), hosts_of(b));
  words("GPUs", a.gpus ? std::to_string(*a.gpus) : "", b.gpus ? std::to_string(*b.gpus) : "");
  words("config", a.config, b.config);
  words("status", a.status, b.status);
  words("steps", std::to_string(a.steps), std::to_string(b.steps));
  for (const Measure& measure : kMeasures) {
    rows.push_back({measure.name, cell(a.speeds.*measure.value, measure.decimals),
                    cell(b.speeds.*measure.value, measure.decimals),
                    cell(ratio(measure, a, b), 4)});
  }
  std::string text = bench::aligned(rows);
  for (const PastRun* run : {&a, &b}) {
    for (const std::string& doubt : run->doubts)
      text += "doubt: " + run->path + ": " + doubt + "\n";
  }
  return text;
}

// As it was written, or below the directory of the history.
Result<PastRun> run_called(const std::string& name, const std::string& directory) {
  if (Result<PastRun> run = bench::read_past_run(name); run) return run;
  Result<PastRun> run = bench::read_past_run(directory + "/" + name);
  if (run) run->path = name;
  return run;
}

int run_compare(const std::string& first, const std::string& second, const std::string& directory,
                bool as_json) {
  const Result<PastRun> a = run_called(first, directory);
  if (!a) return usage_error(a.error().one_line());
  const Result<PastRun> b = run_called(second, directory);
  if (!b) return usage_error(b.error().one_line());
  if (!as_json) {
    write_all(1, compare(*a, *b));
    return 0;
  }
  Json ratios = Json::object();
  for (const Measure& measure : kMeasures) ratios[measure.name] = known(ratio(measure, *a, *b));
  write_all(1, dump_pretty({{"a", to_json(*a)}, {"b", to_json(*b)}, {"b_over_a", ratios}}) + "\n");
  return 0;
}

// ---- pictures

// A run that is drawn: where its metrics lie, and what it is called.
struct Drawn {
  std::string folder;
  std::string name;
};

Result<Drawn> drawn_run(const std::string& name, const std::string& directory) {
  if (bench::read_past_run(name)) return Drawn{name, name};
  std::string below = directory + "/" + name;
  if (const Result<PastRun> run = bench::read_past_run(below); !run) return run.error();
  return Drawn{std::move(below), name};
}

// The newest run under the directory that has metrics: the directory itself, if it is a run.
Result<Drawn> newest_run(const std::string& directory) {
  const Result<std::vector<PastRun>> runs = bench::read_history(directory);
  if (!runs) return runs.error();
  for (auto run = runs->rbegin(); run != runs->rend(); ++run) {
    if (run->steps == 0) continue;
    return Drawn{run->path == "." ? directory : directory + "/" + run->path,
                 run->path == "." ? directory : run->path};
  }
  return Error{"no run with metrics", printable(directory, 200),
               "name a run's directory: ezpz history DIR --plot"};
}

Result<std::vector<bench::Panel>> panels_of(const std::vector<Drawn>& runs) {
  std::vector<bench::Panel> panels = {{"tokens/s", {}}, {"loss", {}}};
  for (const Drawn& run : runs) {
    const Result<bench::MetricsReading> reading = bench::read_metrics(run.folder);
    if (!reading) return reading.error();
    bench::Series speed{run.name, {}};
    bench::Series loss{run.name, {}};
    for (const bench::StepMetrics& step : reading->steps) {
      const auto iter = static_cast<double>(step.iter);
      speed.points.emplace_back(iter, step.tokens_per_s);
      loss.points.emplace_back(iter, step.loss);
    }
    panels[0].series.push_back(std::move(speed));
    panels[1].series.push_back(std::move(loss));
  }
  return panels;
}

// What the locale says of the terminal, as setlocale(3) reads it.
bench::Characters characters() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = ::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string folded = lower(value);
    const bool utf8 =
        folded.find("utf-8") != std::string::npos || folded.find("utf8") != std::string::npos;
    return utf8 ? bench::Characters::braille : bench::Characters::ascii;
  }
  return bench::Characters::ascii;
}

int run_plot(const std::vector<Drawn>& runs, const std::string& svg_file) {
  constexpr int kWidth = 64;
  constexpr int kHeight = 10;
  const Result<std::vector<bench::Panel>> panels = panels_of(runs);
  if (!panels) return usage_error(panels.error().one_line());
  std::string title = runs.front().name;
  for (size_t i = 1; i < runs.size(); ++i) title += " and " + runs[i].name;
  if (!svg_file.empty()) {
    const Status written = write_file_atomically(svg_file, bench::svg_plot(title, *panels));
    if (!written) {
      log::error(written.error().one_line());
      return 1;
    }
  }
  std::string text = printable(title, 200) + "\n";
  for (const bench::Panel& panel : *panels) {
    text += "\n" + bench::terminal_plot(panel, kWidth, kHeight, characters());
  }
  write_all(1, text);
  return 0;
}

}  // namespace

int run_history(const Words& words) {
  bool as_json = false;
  bool comparing = false;
  bool plotting = false;
  std::string svg_file;
  FlagTable table(
      "ezpz history [DIR] [--compare A B] [--plot [--svg FILE]]",
      "The runs under a directory (logs by default, at most three folders deep), oldest "
      "first: what ran where, how it ended, how fast it was (the median of the steps after "
      "the first). From run_info.json and the metrics beside it; a dash is not known.");
  table.add_switch({"--compare"}, "Two runs side by side: their directories, or as DIR lists them.",
                   &comparing);
  table.add_switch({"--plot"},
                   "Throughput and loss of the newest run with metrics, or of the two that are "
                   "compared, drawn in the terminal.",
                   &plotting);
  table.add_string({"--svg"}, "FILE", "With --plot: the same picture as SVG, too.", &svg_file);
  table.add_switch({"--json"}, "For programs.", &as_json);
  table.epilogue(
      "Examples\n"
      "  ezpz history\n"
      "  ezpz history --compare logs/failover-57 logs/failover-58\n"
      "  ezpz history logs --compare failover-57 failover-58 --json\n"
      "  ezpz history logs/failover-58 --plot --svg run.svg");
  if (FlagTable::wants_help_mixed(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse_mixed(words);
  if (!rest) return usage_error(rest.error().one_line());
  const size_t runs_named = comparing ? 2 : 0;
  if (rest->size() < runs_named || rest->size() > runs_named + 1) {
    return usage_error(comparing ? "--compare takes two runs (ezpz history [DIR] --compare A B)"
                                 : "give one directory at most");
  }
  const std::string directory = rest->size() > runs_named ? rest->front() : "logs";
  if (plotting && as_json) return usage_error("--plot draws: leave --json out");
  if (!svg_file.empty() && !plotting) return usage_error("--svg is of --plot");
  if (plotting) {
    std::vector<Drawn> drawn;
    for (size_t i = rest->size() - runs_named; i < rest->size(); ++i) {
      Result<Drawn> run = drawn_run(rest->at(i), directory);
      if (!run) return usage_error(run.error().one_line());
      drawn.push_back(*std::move(run));
    }
    if (!comparing) {
      Result<Drawn> run = newest_run(directory);
      if (!run) return usage_error(run.error().one_line());
      drawn.push_back(*std::move(run));
    }
    return run_plot(drawn, svg_file);
  }
  if (comparing) return run_compare(rest->at(rest->size() - 2), rest->back(), directory, as_json);
  const Result<std::vector<PastRun>> runs = bench::read_history(directory);
  if (!runs) return usage_error(runs.error().one_line());
  if (as_json) {
    Json list = Json::array();
    for (const PastRun& run : *runs) list.push_back(to_json(run));
    write_all(1, dump_pretty(list) + "\n");
    return 0;
  }
  if (runs->empty()) {
    log::info("no run is recorded under " + printable(directory, 200));
    return 0;
  }
  write_all(1, tell(*runs));
  return 0;
}

}  // namespace ezpz::app
