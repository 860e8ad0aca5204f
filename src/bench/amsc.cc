#include "bench/amsc.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/text.h"
#include "bench/csv.h"

namespace ezpz::bench {

const std::string_view amsc_header =
    "timestamp,system,config,nodes,gpus,status,wall_time_sec,throughput_tokens_per_sec,"
    "throughput_tokens_per_sec_per_gpu,mfu,tflops,final_loss,steps,error";
const std::string_view vit_weather_header = "configuration_name,samples_per_sec,iters_per_sec";

namespace {

constexpr double kTolerance = 0.02;  // of two numbers that must be the same
constexpr size_t kMostNote_bytes = 2000;

constexpr std::string_view kReducers[] = {"median", "mean", "max", "min", "last"};

std::string cell(const std::optional<double>& value, int decimals) {
  return value ? short_number(*value, decimals) : "";
}

std::string whole_second(double wall_s) {
  std::string text = iso8601(wall_s);
  return text.substr(0, 19) + "Z";
}

// Text for a field: no bytes that a terminal or a spreadsheet would act on. Line breaks stay, the
// quoting takes care of them.
std::string clean(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) line = printable(line, kMostNote_bytes);
  std::string shown = join(lines, "\n");
  if (shown.size() > kMostNote_bytes) shown.resize(kMostNote_bytes);
  return shown;
}

class Summarizer {
 public:
  Summarizer(const MetricsReading& metrics, const Provenance& provenance, const ExportWish& wish,
             double now_s)
      : metrics_(metrics), provenance_(provenance), wish_(wish), now_s_(now_s) {}

  Result<RunSummary> run() {
    for (const std::string& trouble : provenance_.trouble) warn("not used: " + trouble);
    if (Status named = check_names(); !named) return named.error();
    if (Status known = identify(); !known) return known.error();
    measure();
    if (Status timed = take_wall_time(); !timed) return timed.error();
    if (Status ended = take_status(); !ended) return ended.error();
    take_time();
    note_network();
    note_departures();
    note_attempts();
    note_series();
    check_plausible();
    if (!refusals_.empty() && !wish_.force) {
      return Error{"not exported: " + join(refusals_, "; "), wish_.config,
                   "--force exports it with that said in the error column"};
    }
    for (const std::string& refusal : refusals_) note(refusal);
    compose_error();
    return std::move(out_);
  }

 private:
  void warn(const std::string& line) { out_.warnings.push_back(line); }
  void note(const std::string& phrase) { notes_.push_back(phrase); }

  Status check_names() {
    if (wish_.config.empty()) return Error{"no label", "--config", "agpt-2b/bs1/seq2048/tp1, say"};
    // A spreadsheet would run a label that begins like a formula. No honest one does, so it is
    // refused; to change it (a quote before it) would publish another label than was meant.
    for (const std::string* text : {&wish_.config, &wish_.system}) {
      if (looks_like_formula(*text) || printable(*text, text->size()) != *text) {
        return Error{"not a name that can be published: " + printable(*text, 80),
                     text == &wish_.config ? "--config" : "--system",
                     "it begins like a spreadsheet's formula, or holds control characters"};
      }
    }
    return success();
  }

  Status identify() {
    out_.system = !wish_.system.empty() ? wish_.system : provenance_.system;
    const std::optional<int> nodes = wish_.nodes ? wish_.nodes : provenance_.nodes;
    const std::optional<int> gpus = wish_.gpus ? wish_.gpus : provenance_.gpus;
    std::vector<std::string> missing;
    if (out_.system.empty()) missing.emplace_back("--system NAME");
    if (!nodes) missing.emplace_back("--nodes N");
    if (!gpus) missing.emplace_back("--gpus N");
    if (!missing.empty()) {
      std::string what = "it is not known what ran: give " + join(missing, " ");
      if (!gpus && !provenance_.gpus_unknown.empty()) {
        what += " (GPUs: " + printable(provenance_.gpus_unknown, 200) + ")";
      }
      std::string hint = provenance_.source.empty()
                             ? "there is no run_info.json, config.json or report*.md"
                             : "as far as " + provenance_.source + " tells";
      if (provenance_.allocated_nodes || provenance_.allocated_gpus) {
        const auto told = [](const std::optional<int>& count) {
          return count ? std::to_string(*count) : std::string("unknown");
        };
        hint += "; allocated were: nodes " + told(provenance_.allocated_nodes) + ", GPUs " +
                told(provenance_.allocated_gpus) + ", which need not all have run";
      }
      return Error{what, "", hint};
    }
    out_.system = clean(out_.system);
    if (looks_like_formula(out_.system)) {
      return Error{"not a name that can be published: " + printable(out_.system, 80),
                   provenance_.source, "say --system"};
    }
    out_.nodes = *nodes;
    out_.gpus = *gpus;
    if (out_.gpus < out_.nodes) {
      refuse(fmt::format("{} GPUs on {} nodes: fewer than one each", out_.gpus, out_.nodes));
    }
    return success();
  }

  void refuse(const std::string& reason) { refusals_.push_back(reason); }

  void measure() {
    speeds_ = speeds_of(metrics_, wish_.warmup, wish_.reducer);
    out_.tokens_per_s = speeds_.tokens_per_s;
    out_.tokens_per_s_per_gpu = speeds_.tokens_per_s_per_gpu;
    // Of the two speeds one follows from the other.
    if (!out_.tokens_per_s && out_.tokens_per_s_per_gpu) {
      out_.tokens_per_s = *out_.tokens_per_s_per_gpu * out_.gpus;
    }
    if (!out_.tokens_per_s_per_gpu && out_.tokens_per_s) {
      out_.tokens_per_s_per_gpu = *out_.tokens_per_s / out_.gpus;
    }
    out_.mfu_percent = speeds_.mfu_percent;
    out_.tflops_per_gpu = speeds_.tflops_per_gpu;
    out_.final_loss = speeds_.final_loss;
    out_.steps = static_cast<int64_t>(metrics_.steps.size());
    out_.samples_per_s = speeds_.samples_per_s;
    out_.iters_per_s = speeds_.iters_per_s;
    if (!out_.tokens_per_s) {
      warn(out_.steps <= wish_.warmup ? fmt::format("no throughput: {} steps, of which {} warm up",
                                                    out_.steps, wish_.warmup)
                                      : std::string("no throughput: the records have none"));
    }
  }

  Status take_wall_time() {
    if (wish_.wall_time_s) {
      out_.wall_time_s = *wish_.wall_time_s;
      return success();
    }
    if (!speeds_.wall_time_s) {
      return Error{"the steps' times are not known: give --wall-time-sec S", "",
                   "no record has train/dt"};
    }
    out_.wall_time_s = *speeds_.wall_time_s;
    if (speeds_.untimed_steps > 0) {
      note(fmt::format("wall_time_sec lacks {} steps, which have no time", speeds_.untimed_steps));
    }
    return success();
  }

  Status take_status() {
    out_.status = wish_.status;
    if (!out_.status.empty()) {
      const bool said_to_fail = provenance_.run && !provenance_.run->end.empty() &&
                                provenance_.run->end != "success" && out_.status == "pass";
      if (said_to_fail) note("the run's own record ends with " + provenance_.run->end);
      return success();
    }
    if (provenance_.run) {
      const std::string& end = provenance_.run->end;
      if (end.empty()) {
        return Error{"run_info.json has no end: whoever was to write it was killed, or still runs",
                     "", "give --status pass or --status fail"};
      }
      out_.status = end == "success" ? "pass" : "fail";
      if (end != "success") note("ended with " + end);
      return success();
    }
    if (metrics_.truncated > 0) {
      return Error{"the last line is torn, so the run was killed while it wrote", "",
                   "give --status pass or --status fail"};
    }
    out_.status = "pass";
    warn("nothing here tells how the run ended: exported as pass (--status says otherwise)");
    return success();
  }

  void take_time() {
    if (metrics_.last_time_s) {
      out_.timestamp = whole_second(*metrics_.last_time_s);
      return;
    }
    out_.timestamp = whole_second(now_s_);
    warn("no record tells its time: the row has the time of its export");
  }

  void note_network() {
    out_.config = wish_.config;
    if (!provenance_.run || !provenance_.run->network.fallback) return;
    const NetworkInfo& network = provenance_.run->network;
    constexpr std::string_view mark = "-NO-OFI-PLUGIN";
    const bool marked = out_.config.size() >= mark.size() &&
                        out_.config.substr(out_.config.size() - mark.size()) == mark;
    if (!marked) out_.config += mark;
    note("network fell back to " +
         printable(network.fallback_to.empty() ? "another" : network.fallback_to, 80) + ", " +
         printable(network.expected, 80) + " was expected");
  }

  void note_departures() {
    const FoundCell found = find_cell(wish_.config);
    const std::vector<std::string> list = departures(found, provenance_.command, out_.nodes);
    if (!list.empty()) {
      refuse((found.in_table ? "departs from the benchmark's own command: "
                             : "the label says something else than the command: ") +
             join(list, ", "));
    }
    if (provenance_.command.empty()) {
      warn("which command was run is not recorded: it could not be held against the label");
    } else if (!found.in_table) {
      warn("no benchmark has a cell " + wish_.config +
           ": only the label was held against the command");
    }
  }

  void note_attempts() {
    if (!provenance_.run || provenance_.run->attempts.size() < 2) return;
    std::string phrase = fmt::format("{} attempts", provenance_.run->attempts.size());
    for (const SwapInfo& swap : provenance_.run->swaps) {
      phrase += ", " + printable(swap.out, 80) +
                (swap.in.empty() ? " taken out" : " swapped for " + printable(swap.in, 80)) +
                fmt::format(" after attempt {}", swap.attempt);
    }
    note(phrase);
  }

  void note_series() {
    if (metrics_.redone > 0) {
      note(fmt::format("{} {} done again and counted once", metrics_.redone,
                       metrics_.redone == 1 ? "step was" : "steps were"));
    }
    if (metrics_.gaps() > 0) {
      note(fmt::format("{} of {} iterations have no record", metrics_.gaps(),
                       metrics_.gaps() + out_.steps));
    }
    if (!metrics_.steps.empty() && !std::isfinite(metrics_.steps.back().loss) && metrics_.nan > 0) {
      note("the last loss is no number");
    }
    if (const std::string losses = metrics_.losses(); !losses.empty()) warn("left out: " + losses);
    if (metrics_.nan > 0) {
      warn(fmt::format("{} records hold NaN or an infinity, which was not used", metrics_.nan));
    }
    if (metrics_.clock_back > 0) {
      warn(
          fmt::format("the clock went backwards {} times; times of day are not used for anything "
                      "but the timestamp",
                      metrics_.clock_back));
    }
    const std::vector<int> missing =
        metrics_.missing_ranks(provenance_.run && provenance_.run->world_size > 0
                                   ? std::optional<int>(provenance_.run->world_size)
                                   : std::nullopt);
    if (!missing.empty()) {
      warn("no metrics of ranks " + printable(ranges(missing), 200) +
           fmt::format("; the row is what rank {} measured", metrics_.rank));
    }
    for (const auto& [rank, seen] : metrics_.ranks) {
      if (rank == metrics_.rank || seen.last_iter <= metrics_.steps.back().iter) continue;
      warn(fmt::format("rank {} came to step {}, and rank {}, of which the row is, only to {}",
                       rank, seen.last_iter, metrics_.rank, metrics_.steps.back().iter));
      break;
    }
  }

  // Rows that were off by the number of GPUs have been published before: nothing errored.
  void check_plausible() {
    if (speeds_.mfu_percent && *speeds_.mfu_percent > 100) {
      refuse(fmt::format("an MFU of {:.4g} % is above the peak", *speeds_.mfu_percent));
    }
    if (speeds_.tokens_per_s && speeds_.tokens_per_s_per_gpu && *speeds_.tokens_per_s_per_gpu > 0) {
      const double gpus = *speeds_.tokens_per_s / *speeds_.tokens_per_s_per_gpu;
      if (std::abs(gpus - out_.gpus) > kTolerance * out_.gpus) {
        refuse(
            fmt::format("train/tps is {:.4g} times train/tps_per_gpu, and {} GPUs are said to "
                        "have run",
                        gpus, out_.gpus));
      }
    }
    check_tokens_of_a_step();
  }

  // What a step takes times the speed is what a step is made of, where the command tells that.
  void check_tokens_of_a_step() {
    const Said said = what_command_says(provenance_.command);
    const auto number = [&said](const char* name, double otherwise) {
      const auto found = said.known.find(name);
      return found == said.known.end() ? otherwise : parse_double(found->second).value_or(0);
    };
    const double tokens = number("batch", 0) * number("seq", 0) * number("grad_accum", 1) *
                          out_.gpus / number("tp", 1);
    if (!(tokens > 0) || !std::isfinite(tokens) || !speeds_.tokens_per_s || !speeds_.iters_per_s) {
      return;
    }
    const double measured = *speeds_.tokens_per_s / *speeds_.iters_per_s;
    if (std::abs(measured - tokens) <= kTolerance * tokens) return;
    warn(
        fmt::format("train/tps times train/dt is {:.6g} tokens a step, and the command asks for "
                    "{:.6g} on {} GPUs",
                    measured, tokens, out_.gpus));
  }

  void compose_error() {
    std::string text = clean(wish_.error);
    // A spreadsheet would run text that begins like a formula. Such a text may well be honest (an
    // option, an address), so it is kept as it is, behind a word of ours.
    if (looks_like_formula(text)) text.insert(0, "note: ");
    if (!notes_.empty()) text += (text.empty() ? "" : "; ") + join(notes_, "; ");
    out_.error = text;
  }

  const MetricsReading& metrics_;
  const Provenance& provenance_;
  const ExportWish& wish_;
  double now_s_;
  RunSummary out_;
  Speeds speeds_;
  std::vector<std::string> notes_;
  std::vector<std::string> refusals_;
};

}  // namespace

bool parse(std::string_view word, Reducer* out) {
  for (size_t i = 0; i < std::size(kReducers); ++i) {
    if (kReducers[i] != word) continue;
    *out = static_cast<Reducer>(i);
    return true;
  }
  return false;
}

std::vector<std::string> reducer_words() { return {std::begin(kReducers), std::end(kReducers)}; }

std::optional<double> reduce(std::vector<double> values, Reducer reducer) {
  values.erase(std::remove_if(values.begin(), values.end(),
                              [](double value) { return !std::isfinite(value); }),
               values.end());
  if (values.empty()) return std::nullopt;
  switch (reducer) {
    case Reducer::median: {
      const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), half, values.end());
      if (values.size() % 2 == 1) return *half;
      return (*half + *std::max_element(values.begin(), half)) / 2;
    }
    case Reducer::mean:
      return std::accumulate(values.begin(), values.end(), 0.0) /
             static_cast<double>(values.size());
    case Reducer::max:
      return *std::max_element(values.begin(), values.end());
    case Reducer::min:
      return *std::min_element(values.begin(), values.end());
    case Reducer::last:
      return values.back();
  }
  return std::nullopt;
}

Speeds speeds_of(const MetricsReading& metrics, long warmup, Reducer reducer) {
  Speeds speeds;
  const std::vector<StepMetrics>& steps = metrics.steps;
  // One column at a time: a run of millions of steps is not held twice.
  std::vector<double> column;
  const auto reduced = [&](auto&& value) {
    column.clear();
    for (auto i = static_cast<size_t>(warmup); i < steps.size(); ++i)
      column.push_back(value(steps[i]));
    return reduce(std::move(column), reducer);
  };
  speeds.tokens_per_s = reduced([](const StepMetrics& step) { return step.tokens_per_s; });
  speeds.tokens_per_s_per_gpu =
      reduced([](const StepMetrics& step) { return step.tokens_per_s_per_gpu; });
  speeds.mfu_percent = reduced([](const StepMetrics& step) { return step.mfu_percent; });
  speeds.tflops_per_gpu = reduced([](const StepMetrics& step) { return step.tflops_per_gpu; });
  speeds.samples_per_s = reduced([](const StepMetrics& step) { return step.samples_per_s; });
  speeds.iters_per_s = reduced([](const StepMetrics& step) { return 1 / step.dt_s; });
  double sum_s = 0;
  for (const StepMetrics& step : steps) {
    if (std::isfinite(step.dt_s)) {
      sum_s += step.dt_s;
    } else {
      ++speeds.untimed_steps;
    }
  }
  if (speeds.untimed_steps < static_cast<int64_t>(steps.size())) speeds.wall_time_s = sum_s;
  if (!steps.empty() && std::isfinite(steps.back().loss)) speeds.final_loss = steps.back().loss;
  return speeds;
}

std::string short_number(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

Result<RunSummary> summarize(const MetricsReading& metrics, const Provenance& provenance,
                             const ExportWish& wish, double now_s) {
  return Summarizer(metrics, provenance, wish, now_s).run();
}

std::string amsc_row(const RunSummary& run) {
  return csv_row({run.timestamp, run.system, run.config, std::to_string(run.nodes),
                  std::to_string(run.gpus), run.status, short_number(run.wall_time_s, 3),
                  cell(run.tokens_per_s, 3), cell(run.tokens_per_s_per_gpu, 3),
                  cell(run.mfu_percent, 3), cell(run.tflops_per_gpu, 3), cell(run.final_loss, 6),
                  std::to_string(run.steps), run.error});
}

std::string vit_weather_row(const RunSummary& run) {
  return csv_row({run.config, cell(run.samples_per_s, 3), cell(run.iters_per_s, 3)});
}

}  // namespace ezpz::bench
