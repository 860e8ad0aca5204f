#include "bench/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "bench/columns.h"
#include "bench/csv.h"

namespace ezpz::bench {
namespace {

using Fields = std::vector<std::string>;

std::string field(const std::optional<double>& value, int decimals, const char* unknown) {
  return value ? short_number(*value, decimals) : unknown;
}
std::string field(const std::optional<int>& value, const char* unknown) {
  return value ? std::to_string(*value) : unknown;
}

std::string rules_of(const BenchRow& row) {
  Fields rules;
  for (const RowFlag& flag : row.flags) rules.push_back(flag.rule);
  return join(rules, ",");
}

std::string reasons_of(const BenchRow& row) {
  Fields reasons;
  for (const RowFlag& flag : row.flags) reasons.push_back(flag.reason);
  return join(reasons, "; ");
}

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string report_text(const std::vector<BenchRow>& rows) {
  std::vector<Fields> lines = {{"cell", "state", "nodes", "GPUs", "ranks", "steps", "tok/s",
                                "tok/s/GPU", "MFU %", "loss", "eff. %", "flags"}};
  for (const BenchRow& row : rows) {
    lines.push_back({row.label, row.state, field(row.nodes, "-"), field(row.gpus, "-"),
                     field(row.ranks, "-"), row.steps > 0 ? std::to_string(row.steps) : "-",
                     field(row.speeds.tokens_per_s, 1, "-"),
                     field(row.speeds.tokens_per_s_per_gpu, 1, "-"),
                     field(row.speeds.mfu_percent, 2, "-"), field(row.speeds.final_loss, 4, "-"),
                     field(row.efficiency_percent, 1, "-"), rules_of(row)});
  }
  std::string text = aligned(lines);
  for (const BenchRow& row : rows) {
    if (!row.why.empty()) text += row.state + ": " + row.label + ": " + printable(row.why) + "\n";
    for (const RowFlag& flag : row.flags) {
      text += "implausible: " + row.label + ": " + flag.reason + "\n";
    }
  }
  return text;
}

std::string report_csv(const std::vector<BenchRow>& rows) {
  std::string text =
      "label,config,state,exit_code,attempts,nodes,gpus,ranks,steps,wall_time_sec,tokens_per_sec,"
      "tokens_per_sec_per_gpu,mfu,tflops,final_loss,baseline,efficiency_percent,flags,note\n";
  for (const BenchRow& row : rows) {
    std::string note = printable(row.why);
    if (const std::string reasons = reasons_of(row); !reasons.empty()) {
      note += (note.empty() ? "" : "; ") + reasons;
    }
    if (looks_like_formula(note)) note.insert(0, "note: ");
    text += csv_row({row.label, row.config, row.state,
                     row.exit_code >= 0 ? std::to_string(row.exit_code) : "",
                     std::to_string(row.attempts), field(row.nodes, ""), field(row.gpus, ""),
                     field(row.ranks, ""), row.steps > 0 ? std::to_string(row.steps) : "",
                     field(row.speeds.wall_time_s, 3, ""), field(row.speeds.tokens_per_s, 3, ""),
                     field(row.speeds.tokens_per_s_per_gpu, 3, ""),
                     field(row.speeds.mfu_percent, 3, ""), field(row.speeds.tflops_per_gpu, 3, ""),
                     field(row.speeds.final_loss, 6, ""), row.baseline,
                     field(row.efficiency_percent, 2, ""), rules_of(row), note}) +
            "\n";
  }
  return text;
}

std::string report_json(const std::vector<BenchRow>& rows) {
  Json list = Json::array();
  for (const BenchRow& row : rows) {
    Json flags = Json::array();
    for (const RowFlag& flag : row.flags) {
      flags.push_back({{"rule", flag.rule}, {"reason", flag.reason}});
    }
    list.push_back({{"label", row.label},
                    {"config", row.config.empty() ? Json(nullptr) : Json(row.config)},
                    {"state", row.state},
                    {"why", row.why.empty() ? Json(nullptr) : Json(row.why)},
                    {"exit_code", row.exit_code >= 0 ? Json(row.exit_code) : Json(nullptr)},
                    {"attempts", row.attempts},
                    {"nodes", known(row.nodes)},
                    {"gpus", known(row.gpus)},
                    {"ranks", known(row.ranks)},
                    {"steps", row.steps},
                    {"wall_time_sec", known(row.speeds.wall_time_s)},
                    {"tokens_per_sec", known(row.speeds.tokens_per_s)},
                    {"tokens_per_sec_per_gpu", known(row.speeds.tokens_per_s_per_gpu)},
                    {"mfu", known(row.speeds.mfu_percent)},
                    {"tflops", known(row.speeds.tflops_per_gpu)},
                    {"final_loss", known(row.speeds.final_loss)},
                    {"baseline", row.baseline.empty() ? Json(nullptr) : Json(row.baseline)},
                    {"efficiency_percent", known(row.efficiency_percent)},
                    {"flags", flags}});
  }
  return dump_pretty({{"cells", list}}) + "\n";
}

}  // namespace ezpz::bench
