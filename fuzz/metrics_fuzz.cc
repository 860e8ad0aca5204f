// Metrics and run records as they may be found after a crash, or as somebody else wrote them: each
// line is judged as a real parser of JSON would judge it, the pieces in which the bytes come change
// nothing, and a record that is read survives being written and read once more.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "bench/amsc.h"
#include "bench/metrics_dir.h"
#include "bench/provenance.h"
#include "bench/run_info.h"

namespace {

using namespace ezpz::bench;

MetricsReading read(std::string_view text, size_t piece) {
  MetricsReading reading;
  MetricsFeed feed(&reading);
  feed.begin_file(0);
  for (size_t at = 0; at < text.size(); at += piece) feed.feed(text.substr(at, piece));
  feed.end_file();
  return reading;
}

// Left out is what the two are meant to judge differently: NaN and Infinity (Python's), numbers out
// of range, depth (a short line has none), half pairs of \u, bytes that are no ASCII, NUL.
bool comparable(std::string_view line) {
  if (line.size() > 64 || line.find_first_of("NI") != std::string_view::npos) return false;
  if (line.find("\\u") != std::string_view::npos) return false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] <= 0) return false;
    const bool digit = i > 0 && line[i - 1] >= '0' && line[i - 1] <= '9';
    if (digit && (line[i] == 'e' || line[i] == 'E')) return false;
  }
  return true;
}

void compare_with_a_parser(std::string_view line) {
  if (!comparable(line)) return;
  MetricsRecord record;
  const bool whole = read_metrics_line(line, &record) != LineKind::damaged;
  if (whole != nlohmann::json::accept(line)) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const MetricsReading whole = read(text, size + 1);
  const MetricsReading pieces = read(text, 7);
  if (whole.records != pieces.records || whole.damaged != pieces.damaged ||
      whole.truncated != pieces.truncated || whole.foreign != pieces.foreign ||
      whole.steps.size() != pieces.steps.size()) {
    abort();
  }
  (void)whole.losses();
  (void)whole.missing_ranks(8);
  for (size_t i = 1; i < whole.steps.size(); ++i) {
    if (whole.steps[i].iter <= whole.steps[i - 1].iter) abort();
  }
  for (const std::string& line : ezpz::split_lines(text)) {
    if (ezpz::trim(line).empty()) continue;
    compare_with_a_parser(line);
    MetricsRecord record;
    if (read_metrics_line(line, &record) != LineKind::step) continue;
    MetricsRecord back;
    const std::string written = metrics_line(record.step, 3, 1e9);
    if (read_metrics_line(written, &back) != LineKind::step) abort();
    if (back.step.iter != record.step.iter) abort();
  }
  const auto run = run_info_from_json(text, "fuzz");
  if (run) {
    const std::string once = to_json_text(*run);
    const auto again = run_info_from_json(once, "fuzz");
    if (!again || to_json_text(*again) != once) abort();
  }
  Provenance provenance;
  apply_python_values(json_values(text), &provenance);
  apply_python_values(report_bullets(text), &provenance);
  if (run) provenance.run = *run;
  ExportWish wish;
  wish.config = "c";
  wish.force = true;
  wish.status = "fail";
  wish.system = "s";
  wish.nodes = 1;
  wish.gpus = 8;
  wish.wall_time_s = 1;
  const auto row = summarize(whole, provenance, wish, 1e9);
  if (!row || amsc_row(*row).find('\n') != std::string::npos) abort();
  return 0;
}
