// `ezpz export-amsc RUN_DIR --config LABEL`: one row of a benchmark's table, or the reason why not.
#include <cmath>

#include "app/command.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/amsc.h"
#include "bench/csv.h"

namespace ezpz::app {
namespace {

constexpr int kRefused = 1;

FlagTable table_for(bench::ExportWish* wish, std::optional<long>* nodes, std::optional<long>* gpus,
                    std::optional<long>* warmup, std::string* reducer, std::string* append,
                    bool* no_header, std::string* format) {
  FlagTable table("ezpz export-amsc RUN_DIR --config LABEL [flags]",
                  "Makes one row of the AmSC benchmarks' runs.csv of a run: from its metrics "
                  "(metrics-<rank>.jsonl, metrics.jsonl or <run_id>.jsonl) and its provenance "
                  "(run_info.json, config.json, or the Distributed section of report*.md). What is "
                  "not known is asked for and not guessed; what was not measured stays empty.");
  table.add_string({"--config"}, "LABEL",
                   "What the row is called: agpt-2b/bs1/seq2048/tp1. The command that was run is "
                   "held against the benchmark's own of that label.",
                   &wish->config);
  table.section("What was not recorded");
  table.add_string({"--system"}, "NAME", "The machine: Perlmutter.", &wish->system);
  table.add_int({"--nodes"}, "N", "Nodes that ran, not those allocated.", 1, nodes);
  table.add_int({"--gpus"}, "N", "GPUs that ran (tiles, GCDs), not those allocated.", 1, gpus);
  table.add_choice({"--status"}, "How it ended. Default: as run_info.json says.", {"pass", "fail"},
                   &wish->status);
  table.add_string({"--error"}, "TEXT", "For the last column; notes of ezpz follow it.",
                   &wish->error);
  Flag wall;
  wall.names = {"--wall-time-sec"};
  wall.value = "S";
  wall.help = "Instead of the sum of the steps' times.";
  wall.set = [wish](std::string_view text) -> Status {
    const std::optional<double> seconds = parse_double(text);
    if (!seconds || !std::isfinite(*seconds) || *seconds <= 0) {
      return Error{"not a number above 0: " + printable(text, 40), "--wall-time-sec", ""};
    }
    wish->wall_time_s = *seconds;
    return success();
  };
  table.add(std::move(wall));
  table.section("The numbers");
  table.add_int({"--warmup"}, "N", "Leading steps that do not count for speeds. Default 1.", 0,
                warmup);
  table.add_choice({"--reducer"}, "What a speed is, of all steps'. Default median.",
                   bench::reducer_words(), reducer);
  table.add_switch({"--force"},
                   "Export what would be refused: a run that departs from the benchmark's command "
                   "or whose numbers contradict each other. The error column says so.",
                   &wish->force);
  table.section("Output");
  table.add_string({"--append"}, "FILE",
                   "Append to this table. Refused when its header is another one; several may "
                   "append at once. Default: standard output.",
                   append);
  table.add_switch({"--no-header"}, "No header on standard output.", no_header);
  table.add_choice({"--format"}, "The columns of which benchmark. Default amsc.",
                   {"amsc", "vit-weather"}, format);
  table.epilogue(
      "A run whose network fell back to sockets gets -NO-OFI-PLUGIN behind its label.\n"
      "Exit codes: 0 exported, 1 refused or not possible, 2 bad usage. docs/amsc.md has the "
      "rules.\n\n"
      "Examples\n"
      "  ezpz export-amsc logs/failover-57 --config agpt-2b/bs1/seq2048/tp1 --append runs.csv\n"
      "  ezpz export-amsc outputs/run --config mine --system Aurora --nodes 2 --gpus 24");
  return table;
}

int refuse(const Error& error) {
  log::error(error.one_line());
  return kRefused;
}

}  // namespace

int run_export_amsc(const Words& words) {
  bench::ExportWish wish;
  std::optional<long> nodes, gpus, warmup;
  std::string reducer, append, format = "amsc";
  bool no_header = false;
  const FlagTable table =
      table_for(&wish, &nodes, &gpus, &warmup, &reducer, &append, &no_header, &format);
  if (FlagTable::wants_help_mixed(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse_mixed(words);
  if (!rest) return usage_error(rest.error().one_line());
  if (rest->size() != 1) {
    return usage_error("give one run's directory (ezpz export-amsc RUN_DIR --config LABEL)");
  }
  if (wish.config.empty())
    return usage_error("--config LABEL is missing: agpt-2b/bs1/seq2048/tp1, say");
  constexpr long most = 100'000'000;
  if (nodes.value_or(0) > most || gpus.value_or(0) > most)
    return usage_error("--nodes or --gpus: too many");
  if (nodes) wish.nodes = static_cast<int>(*nodes);
  if (gpus) wish.gpus = static_cast<int>(*gpus);
  wish.warmup = warmup.value_or(1);
  if (!reducer.empty()) bench::parse(reducer, &wish.reducer);

  const Result<bench::MetricsReading> metrics = bench::read_metrics(rest->at(0));
  if (!metrics) return refuse(metrics.error());
  const bench::Provenance provenance = bench::find_provenance(rest->at(0));
  const Result<bench::RunSummary> run = bench::summarize(*metrics, provenance, wish, wall_s());
  if (!run) return refuse(run.error());
  for (const std::string& warning : run->warnings) log::warning(warning);
  const bool amsc = format == "amsc";
  if (!amsc && !run->error.empty()) log::warning("these columns have no place for: " + run->error);

  const std::string header(amsc ? bench::amsc_header : bench::vit_weather_header);
  const std::string row = amsc ? bench::amsc_row(*run) : bench::vit_weather_row(*run);
  if (append.empty()) {
    return write_all(1, (no_header ? "" : header + "\n") + row + "\n") ? 0 : kRefused;
  }
  std::string note;
  const Status appended = bench::append_csv_row(append, header, row, &note);
  if (!appended) return refuse(appended.error());
  if (!note.empty()) log::warning(note);
  return 0;
}

}  // namespace ezpz::app
