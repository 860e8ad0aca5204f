#include "bench/plausible.h"

#include <fmt/core.h>

#include <cmath>

#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr double kTolerance = 0.02;  // of two numbers that must be the same
constexpr double kLeastEfficiency_percent = 25;

const BenchRow* row_called(const std::vector<BenchRow>& rows, const std::string& label) {
  for (const BenchRow& row : rows) {
    if (row.label == label) return &row;
  }
  return nullptr;
}

bool larger(const BenchRow& row, const BenchRow& other) {
  return row.nodes && other.nodes && *row.nodes > *other.nodes;
}

// Of its series, the one with the fewest nodes.
const BenchRow* smallest_of_series(const std::vector<BenchRow>& rows, const BenchRow& row) {
  const BenchRow* smallest = nullptr;
  for (const BenchRow& other : rows) {
    if (other.series != row.series || !other.measured() || !larger(row, other)) continue;
    if (smallest == nullptr || *other.nodes < *smallest->nodes) smallest = &other;
  }
  return smallest;
}

std::optional<double> percent_of(const BenchRow& row, const BenchRow& baseline) {
  const std::optional<double> mine = unit_speed(row), whole = unit_speed(baseline);
  // A GPU's speed is not held against a node's.
  if (!mine || !whole || !(*whole > 0) || row.gpus.has_value() != baseline.gpus.has_value() ||
      row.ranks.has_value() != baseline.ranks.has_value()) {
    return std::nullopt;
  }
  return 100 * *mine / *whole;
}

void flag(BenchRow* row, const char* rule, std::string reason) {
  row->flags.push_back({rule, std::move(reason)});
}

void judge_mfu(BenchRow* row) {
  const std::optional<double>& mfu = row->speeds.mfu_percent;
  if (mfu && *mfu > 100)
    flag(row, "mfu", fmt::format("an MFU of {:.4g} % is above the peak", *mfu));
}

// More nodes that are slower together than fewer.
void judge_slower(const std::vector<BenchRow>& rows, BenchRow* row) {
  const BenchRow* worst = nullptr;
  for (const BenchRow& other : rows) {
    if (other.series != row->series || !other.measured() || !larger(*row, other)) continue;
    if (*row->speeds.tokens_per_s >= *other.speeds.tokens_per_s) continue;
    if (worst == nullptr || *other.speeds.tokens_per_s > *worst->speeds.tokens_per_s)
      worst = &other;
  }
  if (worst == nullptr) return;
  flag(row, "slower",
       fmt::format("{} nodes do {:.6g} tokens/s, {} did {:.6g} ({})", *row->nodes,
                   *row->speeds.tokens_per_s, *worst->nodes, *worst->speeds.tokens_per_s,
                   worst->label));
}

void judge_efficiency(const std::vector<BenchRow>& rows, BenchRow* row) {
  const BenchRow* const named = row_called(rows, row->baseline);
  if (named != nullptr && named->measured()) row->efficiency_percent = percent_of(*row, *named);
  // Parallel efficiency is against fewer nodes: the named baseline's, or the same on the fewest.
  const BenchRow* candidates[] = {named, smallest_of_series(rows, *row)};
  for (const BenchRow* smaller : candidates) {
    if (smaller == nullptr || !smaller->measured() || !larger(*row, *smaller)) continue;
    const std::optional<double> percent = percent_of(*row, *smaller);
    if (!percent || *percent >= kLeastEfficiency_percent) continue;
    flag(row, "efficiency",
         fmt::format("parallel efficiency is {:.3g} % of {}", *percent, smaller->label));
    return;
  }
}

void judge_network(BenchRow* row) {
  if (row->network_fallback) {
    flag(row, "network",
         "ran over " +
             (row->networks_used.empty() ? std::string("another network")
                                         : printable(join(row->networks_used, ", "), 120)) +
             (row->network_expected.empty()
                  ? ""
                  : ", " + printable(row->network_expected, 80) + " was expected"));
    return;
  }
  if (row->network.empty()) return;
  if (row->networks_used.empty()) {
    flag(row, "network", row->network + " was required, and no rank told what it used");
    return;
  }
  for (const std::string& used : row->networks_used) {
    if (lower(used) == lower(row->network)) continue;
    flag(row, "network", "ran over " + printable(used, 80) + ", required was " + row->network);
    return;
  }
}

// The tokens of a step, from what was asked for and from what was measured.
void judge_tokens(BenchRow* row) {
  const Speeds& speeds = row->speeds;
  const std::optional<int> ranks = row->ranks ? row->ranks : row->gpus;
  if (!(row->tokens_a_rank > 0) || row->tp < 1 || !ranks || !speeds.iters_per_s ||
      !(*speeds.iters_per_s > 0)) {
    return;
  }
  const double asked = row->tokens_a_rank * *ranks / row->tp;
  const double measured = *speeds.tokens_per_s / *speeds.iters_per_s;
  if (std::abs(measured - asked) <= kTolerance * asked) return;
  flag(row, "tokens",
       fmt::format("tokens/s times dt is {:.6g} tokens a step, asked for were {:.6g} on {} ranks",
                   measured, asked, *ranks));
}

}  // namespace

std::optional<double> unit_speed(const BenchRow& row) {
  if (!row.speeds.tokens_per_s) return std::nullopt;
  for (const std::optional<int>* units : {&row.gpus, &row.ranks, &row.nodes}) {
    if (*units && **units > 0) return *row.speeds.tokens_per_s / **units;
  }
  return std::nullopt;
}

void judge(std::vector<BenchRow>* rows) {
  for (BenchRow& row : *rows) {
    row.efficiency_percent.reset();
    row.flags.clear();
    if (row.state != "done") continue;
    judge_mfu(&row);
    judge_network(&row);
    if (!row.measured()) continue;
    judge_slower(*rows, &row);
    judge_efficiency(*rows, &row);
    judge_tokens(&row);
  }
}

}  // namespace ezpz::bench
