// `ezpz bench TABLE`: a table's cells through `ezpz launch`, one after the other; what each came
// to, and whether that can be believed. bench/table, plan, plausible and report do the thinking.
#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "app/command.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/process.h"
#include "base/proctable.h"
#include "base/text.h"
#include "bench/amsc.h"
#include "bench/cell_record.h"
#include "bench/csv.h"
#include "bench/plan.h"
#include "bench/report.h"
#include "bench/table.h"
#include "launch/plan.h"

namespace ezpz::app {
namespace {

using bench::BenchRow;
using bench::CellRecord;
using bench::TableCell;

constexpr int kTrouble = 1;
constexpr double kDefaultTimeout_s = 3600;
// What a launch needs beside its grace: to see the signal, to end what is left, to write its
// record.
constexpr double kLaunchEnds_s = 20;
constexpr size_t kLargestTable_bytes = 4U << 20U;

struct BenchOptions {
  std::string table;
  std::string outdir;
  std::string trainer;
  std::string export_to;
  std::vector<std::string> only;
  double timeout_s = -1;
  double grace_s = 30;
  bool retry_failed = false;
  bool rerun_changed = false;
  bool force = false;
  bool dry_run = false;
  bool as_json = false;
};

FlagTable bench_flags(BenchOptions* o) {
  FlagTable table(
      "ezpz bench TABLE [flags]",
      "Runs a table of cells (model, batch, sequence, tensor parallelism, LoRA, nodes, "
      "environment, "
      "or any command that writes metrics) through `ezpz launch`, one after the other. TABLE is a "
      "file, or one of the built-in ones: " +
          join(bench::builtin_table_names(), ", ") +
          ". Called again it goes on: what is done is not run again.");
  table.section("What to run");
  Flag only;
  only.names = {"--only"};
  only.value = "LABEL";
  only.help = "Only this cell; may be given again.";
  only.set = [o](std::string_view text) -> Status {
    o->only.emplace_back(text);
    return success();
  };
  table.add(std::move(only));
  table.add_switch({"--retry-failed"}, "Also run what failed or ran out of time before.",
                   &o->retry_failed);
  table.add_switch({"--rerun-changed"},
                   "Run cells anew whose configuration is no longer that of their result. Without "
                   "it such a table is refused.",
                   &o->rerun_changed);
  table.add_string({"--trainer"}, "PATH", "ezpz-train. Default: the one beside ezpz.", &o->trainer);
  table.add_switch({"--dry-run"}, "Print each cell's configuration and command; run nothing.",
                   &o->dry_run);
  table.section("Patience");
  table.add_seconds({"--cell-timeout"}, "S",
                    "End a cell after so long, and go on with the next; 0 for never. Default: the "
                    "cell's own timeout, or 1h.",
                    &o->timeout_s);
  table.add_seconds({"--grace"}, "S",
                    "Between asking a cell's ranks to stop and ending them. Default 30.",
                    &o->grace_s);
  table.section("Output");
  table.add_string({"--outdir"}, "DIR",
                   "A directory for each cell, and results.csv. Default: logs/bench-TABLE.",
                   &o->outdir);
  table.add_string(
      {"--export"}, "FILE",
      "Append a row of the AmSC benchmarks' runs.csv (docs/amsc.md) for each cell that "
      "is done and has a config, once.",
      &o->export_to);
  table.add_switch({"--force"},
                   "Export implausible rows, too. Their error column says what is wrong with them.",
                   &o->force);
  table.add_switch({"--json"}, "For programs, instead of the table.", &o->as_json);
  table.epilogue(
      "SIGINT and SIGTERM end the present cell in order; a second one ends it at once.\n"
      "Exit codes: 0 all cells are done and plausible; 1 one is not, or could not be exported; 2 "
      "bad\n"
      "usage; 130, 143 after SIGINT, SIGTERM. docs/bench.md has the table's keys and the rules.\n\n"
      "Examples\n"
      "  ezpz bench scaling --dry-run\n"
      "  ezpz bench amsc-series --outdir logs/series --export runs.csv\n"
      "  ezpz bench my-table.toml --only lora-r16 --retry-failed --cell-timeout 15m");
  return table;
}

Result<bench::CellTable> load_table(const std::string& name) {
  if (!file_exists(name) && name.find('/') == std::string::npos) {
    if (const std::string_view text = bench::builtin_table(name); !text.empty()) {
      return bench::parse_cell_table(text, name + ".toml");
    }
  }
  const Result<std::string> text = read_file(name, kLargestTable_bytes);
  if (!text) {
    Error error = text.error();
    if (error.hint.empty()) {
      error.hint = "a file, or a built-in table: " + join(bench::builtin_table_names(), ", ");
    }
    return error;
  }
  return bench::parse_cell_table(*text, name);
}

std::string absolute(const std::string& path) {
  std::error_code trouble;
  const std::filesystem::path whole = std::filesystem::absolute(path, trouble);
  return trouble ? path : whole.lexically_normal().string();
}

// What may be shown and kept of a cell.
std::map<std::string, std::string> shown(const TableCell& cell) {
  TableCell masked = cell;
  for (auto* words : {&masked.args, &masked.command, &masked.launch}) {
    *words = launch::mask_secrets(*words);
  }
  for (auto& [name, value] : masked.env) {
    if (launch::looks_secret(name)) value = "***";
  }
  return bench::resolved(masked);
}

std::string one_line(const std::map<std::string, std::string>& resolved) {
  std::vector<std::string> words;
  for (const auto& [name, value] : resolved) words.push_back(name + "=" + shell_quote(value));
  return join(words, " ");
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// Where the launch of a try keeps its record; empty: it never came to that.
std::string launch_dir_in(const std::string& run_dir) {
  std::error_code trouble;
  std::string newest;
  for (std::filesystem::directory_iterator each(run_dir, trouble), end; !trouble && each != end;
       each.increment(trouble)) {
    const std::string name = each->path().filename().string();
    std::error_code ignored;
    if (name.rfind("failover-", 0) == 0 && each->is_directory(ignored) && name > newest)
      newest = name;
  }
  return newest.empty() ? "" : run_dir + "/" + newest;
}

// How one launch ended.
struct Ended {
  std::string trouble;  // it could not be started
  Exit exit;
  bool timed_out = false;
  bool stopped = false;  // by a signal to us
};

class Bench {
 public:
  Bench(BenchOptions options, bench::CellTable table)
      : options_(std::move(options)), table_(std::move(table)), outdir_(options_.outdir) {
    if (outdir_.empty()) outdir_ = "logs/bench-" + table_.name;
    outdir_ = absolute(outdir_);
    trainer_ = options_.trainer;
    if (trainer_.empty()) {
      const std::string own = self_path();
      trainer_ = own.substr(0, own.rfind('/') + 1) + "ezpz-train";
    }
  }

  int run() {
    if (Status chosen = choose(); !chosen) return usage_error(chosen.error().one_line());
    if (options_.dry_run) {
      if (Status read = read_records(); !read) return usage_error(read.error().one_line());
      write_all(1, dry_run_text());
      return 0;
    }
    if (Status ready = prepare(); !ready) return usage_error(ready.error().one_line());
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (const int number : signals) {
      loop_.on_signal(number, [this, number] { stop(number); });
    }
    for (size_t i = 0; i < table_.cells.size() && stop_signal_ == 0; ++i) {
      if (due(i)) run_cell(i);
    }
    return conclude();
  }

 private:
  std::string cell_dir(size_t i) const { return outdir_ + "/" + table_.cells[i].folder; }

  Status choose() {
    chosen_.assign(table_.cells.size(), options_.only.empty());
    for (const std::string& label : options_.only) {
      bool found = false;
      std::vector<std::string> labels;
      for (size_t i = 0; i < table_.cells.size(); ++i) {
        labels.push_back(table_.cells[i].label);
        if (table_.cells[i].label == label) found = chosen_[i] = true;
      }
      if (found) continue;
      const auto meant = nearest(label, labels);
      return Error{"no cell is called " + printable(label, 120), "--only",
                   meant ? "did you mean " + *meant + "?" : "--dry-run lists them"};
    }
    return success();
  }

  // Everything that may be wrong is found before a node hour is spent.
  Status prepare() {
    for (size_t i = 0; i < table_.cells.size(); ++i) {
      const TableCell& cell = table_.cells[i];
      if (!chosen_[i] || !cell.command.empty()) continue;
      const std::string& program = cell.trainer.empty() ? trainer_ : cell.trainer;
      if (program.find('/') == std::string::npos || file_exists(program)) continue;
      return Error{"the trainer is not there", printable(program),
                   "cmake --preset train && cmake --build --preset train, or --trainer PATH"};
    }
    if (Status made = make_directories(outdir_); !made) return made.error();
    if (Status locked = lock(); !locked) return locked.error();
    if (Status read = read_records(); !read) return read.error();
    return await_earlier_launches();
  }

  // Two that run one table into one directory would each lose what the other did.
  Status lock() {
    const std::string path = outdir_ + "/.lock";
    lock_ = Fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock_) return Error{std::string("cannot write: ") + strerrordesc_np(errno), path, ""};
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return success();
    if (errno == EWOULDBLOCK) {
      return Error{"another ezpz bench runs into this directory", outdir_, "give another --outdir"};
    }
    log::warning(path + " cannot be locked (" + strerrordesc_np(errno) +
                 "): do not run another ezpz bench into this directory");
    return success();
  }

  Status read_records() {
    records_.assign(table_.cells.size(), {});
    std::vector<std::string> changed;
    for (size_t i = 0; i < table_.cells.size(); ++i) {
      const TableCell& cell = table_.cells[i];
      CellRecord& record = records_[i];
      const std::string path = cell_dir(i) + "/cell.json";
      record.label = cell.label;
      if (file_exists(path)) {
        const Result<std::string> text = read_file(path, kLargestTable_bytes);
        if (!text) return text.error();
        Result<CellRecord> read = bench::cell_record_from_json(*text, path);
        if (!read) return read.error();
        record = std::move(*read);
        const std::vector<std::string> what = bench::changes(record.resolved, shown(cell));
        if (!what.empty() && chosen_[i]) {
          changed.push_back(cell.label + ": " + join(what, ", "));
          record.state = "pending";
          record.exported.clear();
        } else if (!what.empty()) {
          record = {};  // not of this table
        }
      }
      record.label = cell.label;
      record.resolved = shown(cell);
    }
    if (changed.empty()) return success();
    const std::string what =
        "the configuration is not that of the results here: " + join(changed, "; ");
    if (!options_.rerun_changed && !options_.dry_run) {
      return Error{what, outdir_, "--rerun-changed runs them anew; or give another --outdir"};
    }
    log::warning(what);
    return success();
  }

  // An ezpz bench that was killed leaves a launch that ends itself; it has the nodes until it has.
  Status await_earlier_launches() {
    for (const CellRecord& record : records_) {
      if (record.state != "running" || record.pid <= 0 || record.host != host_name()) continue;
      const auto alive = [&record] {
        const std::optional<Process> process = read_process(record.pid);
        return process && process->state != 'Z' && process->start_ticks == record.start_ticks;
      };
      if (!alive()) continue;
      log::info(fmt::format("waiting for the end of an earlier launch of {} (pid {})", record.label,
                            record.pid));
      const double until_s = monotonic_s() + options_.grace_s + kLaunchEnds_s;
      bool gone = false;
      std::function<void()> look = [&] {
        gone = !alive();
        if (!gone) loop_.after(0.1, look);  // a stranger's end: there is no event for it
      };
      look();
      loop_.run_until([&] { return gone || monotonic_s() > until_s; });
      if (!gone) {
        return Error{
            fmt::format("an earlier launch of {} still runs as pid {}", record.label, record.pid),
            outdir_, "end it first"};
      }
    }
    return success();
  }

  bool due(size_t i) const {
    const std::string& state = records_[i].state;
    if (!chosen_[i] || state == "done") return false;
    return (state != "failed" && state != "timed_out") || options_.retry_failed;
  }

  std::string dry_run_text() const {
    std::string text;
    for (size_t i = 0; i < table_.cells.size(); ++i) {
      if (!chosen_[i]) continue;
      const std::string run_dir =
          fmt::format("{}/attempt-{}", cell_dir(i), records_[i].attempts + 1);
      text += table_.cells[i].label +
              (due(i) ? "" : "  (" + records_[i].state + ", not run again)") + "\n  " +
              one_line(records_[i].resolved) + "\n  " +
              shell_join(launch::mask_secrets(plan(i, run_dir).argv)) + "\n";
    }
    return printable_lines(text);
  }

  bench::CellPlan plan(size_t i, const std::string& run_dir) const {
    bench::PlanInput input;
    input.ezpz = self_path();
    input.trainer = trainer_;
    input.run_dir = run_dir;
    input.grace_s = options_.grace_s;
    input.is_secret = launch::looks_secret;
    return bench::plan_cell(table_.cells[i], input);
  }

  void save(size_t i) {
    Status written = make_directories(cell_dir(i));
    if (written) {
      written = write_file_atomically(cell_dir(i) + "/cell.json", bench::to_json_text(records_[i]));
    }
    if (!written) log::error(written.error().one_line());
  }

  void run_cell(size_t i) {
    const TableCell& cell = table_.cells[i];
    CellRecord& record = records_[i];
    ++record.attempts;
    record.run_dir = fmt::format("attempt-{}", record.attempts);
    const std::string run_dir = cell_dir(i) + "/" + record.run_dir;
    const bench::CellPlan planned = plan(i, run_dir);
    record.argv = launch::mask_secrets(planned.argv);
    record.state = "running";
    record.why.clear();
    record.exit_code = -1;
    record.started = iso8601(wall_s());
    record.ended.clear();
    record.host = host_name();
    record.pid = 0;
    save(i);
    log::info(fmt::format("cell {} of {}: {}: {}", i + 1, table_.cells.size(), cell.label,
                          one_line(record.resolved)));
    const double begin_s = monotonic_s();
    const Ended ended = run_launch(i, planned, run_dir);
    record.ended = iso8601(wall_s());
    record.pid = 0;
    judge_end(cell, ended, run_dir, &record);
    save(i);
    log::info(fmt::format("{}: {} after {}{}", cell.label, record.state,
                          human_duration(monotonic_s() - begin_s),
                          record.why.empty() ? "" : ": " + record.why));
  }

  void judge_end(const TableCell& cell, const Ended& ended, const std::string& run_dir,
                 CellRecord* record) const {
    if (!ended.trouble.empty()) {
      record->state = "failed";
      record->why = ended.trouble;
      return;
    }
    record->exit_code = ended.exit.shell_code();
    const std::string log = "; see " + run_dir + "/launch.log";
    if (ended.stopped) {
      record->state = "pending";
      record->why = "interrupted";
    } else if (ended.timed_out) {
      record->state = "timed_out";
      record->why = "not done after " + human_duration(timeout_of(cell)) + log;
    } else if (!ended.exit.clean()) {
      record->state = "failed";
      record->why = ended.exit.describe() + log;
    } else {
      const Result<bench::MetricsReading> metrics = bench::read_metrics(metrics_dir(cell, run_dir));
      record->state = metrics ? "done" : "failed";
      if (!metrics)
        record->why = "it ended well and measured nothing: " + metrics.error().one_line();
    }
  }

  static std::string metrics_dir(const TableCell& cell, const std::string& run_dir) {
    const std::string own = bench::metrics_of(cell, run_dir);
    return own.empty() ? launch_dir_in(run_dir) : own;
  }

  double timeout_of(const TableCell& cell) const {
    return options_.timeout_s >= 0 ? options_.timeout_s
                                   : cell.timeout_s.value_or(kDefaultTimeout_s);
  }

  Ended run_launch(size_t i, const bench::CellPlan& planned, const std::string& run_dir) {
    Ended ended;
    if (Status made = make_directories(run_dir); !made) {
      ended.trouble = made.error().one_line();
      return ended;
    }
    const std::string log_path = run_dir + "/launch.log";
    const Fd log_file(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    SpawnSpec spec;
    spec.argv = planned.argv;
    for (const auto& [name, value] : planned.env) spec.env[name] = value;
    spec.stdout_fd = spec.stderr_fd = log_file.get();
    spec.new_session = true;  // Ctrl-C comes through us, once
    spec.parent_death_signal = SIGTERM;
    const Result<pid_t> pid =
        log_file ? spawn(spec)
                 : Result<pid_t>(
                       Error{std::string("cannot write: ") + strerrordesc_np(errno), log_path, ""});
    if (!pid) {
      ended.trouble = pid.error().one_line();
      return ended;
    }
    child_ = *pid;
    if (const std::optional<Process> process = read_process(*pid)) {
      records_[i].pid = *pid;
      records_[i].start_ticks = process->start_ticks;
      save(i);
    }
    bool over = false;
    loop_.on_child(*pid, [&](Exit exit) {
      ended.exit = exit;
      over = true;
    });
    Loop::TimerId limit = 0;
    const double timeout_s = timeout_of(table_.cells[i]);
    if (timeout_s > 0) {
      limit = loop_.after(timeout_s, [&] {
        limit = 0;
        ended.timed_out = stop_signal_ == 0;
        end_child();
      });
    }
    loop_.run_until([&] { return over; });
    if (limit != 0) loop_.cancel(limit);
    if (last_resort_ != 0) loop_.cancel(last_resort_);
    last_resort_ = 0;
    child_ = 0;
    // A cell that was done before the signal reached it is done.
    ended.stopped = stop_signal_ != 0 && !ended.exit.clean();
    return ended;
  }

  // In order: the launch ends its ranks and writes its record. What is left then goes at once.
  void end_child() {
    kill(child_, SIGTERM);
    if (last_resort_ != 0) return;
    last_resort_ = loop_.after(options_.grace_s + kLaunchEnds_s, [this] {
      last_resort_ = 0;
      kill_family(child_);
    });
  }

  void stop(int number) {
    if (child_ == 0) {
      stop_signal_ = number;
    } else if (stop_signal_ == 0) {
      stop_signal_ = number;
      log::info("asked to stop: ending the present cell; a second signal ends it at once");
      end_child();
    } else {
      kill_family(child_);
    }
  }

  // ---- results

  BenchRow row_of(size_t i) const {
    const TableCell& cell = table_.cells[i];
    const CellRecord& record = records_[i];
    BenchRow row;
    row.label = cell.label;
    row.config = cell.config;
    row.baseline = cell.baseline;
    row.series = bench::series_of(cell);
    row.network = cell.network;
    row.state = record.state;
    row.why = record.why;
    row.exit_code = record.exit_code;
    row.attempts = record.attempts;
    const auto number = [&cell](const char* name, double otherwise) {
      const auto found = cell.settings.find(name);
      return found == cell.settings.end() ? otherwise : parse_double(found->second).value_or(0);
    };
    row.tokens_a_rank = number("batch", 1) * number("seq", 0) * number("grad_accum", 1);
    row.tp = static_cast<int>(std::clamp(number("tp", 1), 0.0, 1e6));
    if (record.state != "done") return row;
    const std::string run_dir = cell_dir(i) + "/" + record.run_dir;
    const Result<bench::MetricsReading> metrics = bench::read_metrics(metrics_dir(cell, run_dir));
    if (!metrics) {
      row.state = "failed";
      row.why = "its metrics are gone: " + metrics.error().one_line();
      return row;
    }
    row.steps = static_cast<int64_t>(metrics->steps.size());
    row.speeds = bench::speeds_of(*metrics, 1, bench::Reducer::median);
    const bench::Provenance provenance = bench::find_provenance(launch_dir_in(run_dir));
    row.nodes = provenance.nodes;
    row.gpus = cell.gpus > 0 ? std::optional<int>(cell.gpus) : provenance.gpus;
    if (provenance.run) {
      if (provenance.run->world_size > 0) row.ranks = provenance.run->world_size;
      row.networks_used = provenance.run->network.used;
      row.network_fallback = provenance.run->network.fallback;
      row.network_expected = provenance.run->network.expected;
    }
    return row;
  }

  int conclude() {
    std::vector<BenchRow> rows;
    std::vector<size_t> cells;
    for (size_t i = 0; i < table_.cells.size(); ++i) {
      if (!chosen_[i] && records_[i].attempts == 0) continue;
      rows.push_back(row_of(i));
      cells.push_back(i);
    }
    bench::judge(&rows);
    const Status stored = write_file_atomically(outdir_ + "/results.csv", bench::report_csv(rows));
    if (!stored) log::error(stored.error().one_line());
    write_all(1, options_.as_json ? bench::report_json(rows) : bench::report_text(rows));
    bool good = stored.ok();
    for (size_t k = 0; k < rows.size(); ++k) {
      if (!chosen_[cells[k]]) continue;
      if (rows[k].state != "done" || (!rows[k].flags.empty() && !options_.force)) good = false;
      if (!options_.export_to.empty() && !export_row(cells[k], rows[k])) good = false;
    }
    if (stop_signal_ != 0) return 128 + stop_signal_;
    return good ? 0 : kTrouble;
  }

  // False: it should have been exported, and was not.
  bool export_row(size_t i, const BenchRow& row) {
    CellRecord& record = records_[i];
    const std::string table = absolute(options_.export_to);
    if (row.state != "done" || row.config.empty()) return true;
    if (std::find(record.exported.begin(), record.exported.end(), table) != record.exported.end())
      return true;
    std::vector<std::string> reasons;
    for (const bench::RowFlag& flag : row.flags) reasons.push_back(flag.reason);
    if (!reasons.empty() && !options_.force) {
      log::warning("held back from export: " + row.label + ": " + join(reasons, "; ") +
                   " (--force exports it with that said)");
      return false;
    }
    const TableCell& cell = table_.cells[i];
    const std::string run_dir = cell_dir(i) + "/" + record.run_dir;
    bench::ExportWish wish;
    wish.config = cell.config;
    wish.system = cell.system;
    if (cell.gpus > 0) wish.gpus = cell.gpus;
    wish.force = options_.force;
    wish.error = reasons.empty() ? "" : "implausible: " + join(reasons, "; ");
    const Result<bench::MetricsReading> metrics = bench::read_metrics(metrics_dir(cell, run_dir));
    if (!metrics) return refuse(row.label, metrics.error());
    const Result<bench::RunSummary> run =
        bench::summarize(*metrics, bench::find_provenance(launch_dir_in(run_dir)), wish, wall_s());
    if (!run) return refuse(row.label, run.error());
    for (const std::string& warning : run->warnings) log::warning(row.label + ": " + warning);
    std::string note;
    const Status appended =
        bench::append_csv_row(table, std::string(bench::amsc_header), bench::amsc_row(*run), &note);
    if (!appended) return refuse(row.label, appended.error());
    if (!note.empty()) log::warning(note);
    record.exported.push_back(table);
    save(i);
    return true;
  }

  static bool refuse(const std::string& label, const Error& error) {
    log::error("not exported: " + label + ": " + error.one_line());
    return false;
  }

  BenchOptions options_;
  bench::CellTable table_;
  std::string outdir_;
  std::string trainer_;
  Fd lock_;
  Loop loop_;
  std::vector<bool> chosen_;
  std::vector<CellRecord> records_;
  pid_t child_ = 0;
  int stop_signal_ = 0;
  Loop::TimerId last_resort_ = 0;
};

}  // namespace

int run_bench(const Words& words) {
  BenchOptions options;
  const FlagTable flags = bench_flags(&options);
  if (FlagTable::wants_help_mixed(words)) {
    write_all(1, flags.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = flags.parse_mixed(words);
  if (!rest) return usage_error(rest.error().one_line());
  if (rest->size() != 1) {
    return usage_error("give one table: a file, or " + join(bench::builtin_table_names(), ", "));
  }
  if (options.dry_run && options.as_json)
    return usage_error("--dry-run and --json exclude each other");
  Result<bench::CellTable> table = load_table(rest->front());
  if (!table) return usage_error(table.error().one_line());
  return Bench(std::move(options), std::move(*table)).run();
}

}  // namespace ezpz::app
