// Tables of cells as a person writes them, and cell.json as a crash may have left it: whatever is
// read has cells that can be planned, folders that no two share and that stay below the outdir, and
// a record that survives being written and read once more.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "bench/cell_record.h"
#include "bench/plan.h"
#include "bench/table.h"

namespace {

using namespace ezpz;

void demand(bool holds) {
  if (!holds) abort();
}

void read_as_table(std::string_view text) {
  const Result<bench::CellTable> table = bench::parse_cell_table(text, "x.toml");
  if (!table) {
    demand(!table.error().one_line().empty());
    return;
  }
  bench::PlanInput input;
  input.ezpz = "/bin/ezpz";
  input.trainer = "/bin/ezpz-train";
  input.run_dir = "/runs/cell/attempt-1";
  std::set<std::string> folders;
  for (const bench::TableCell& cell : table->cells) {
    demand(!cell.label.empty() && !cell.folder.empty());
    demand(cell.folder.find('/') == std::string::npos && cell.folder.front() != '.');
    demand(folders.insert(cell.folder).second);
    const bench::CellPlan plan = bench::plan_cell(cell, input);
    demand(plan.argv.size() > 2 && plan.argv[0] == input.ezpz && plan.argv[1] == "launch");
    demand(bench::changes(bench::resolved(cell), bench::resolved(cell)).empty());
  }
}

void read_as_record(std::string_view text) {
  const Result<bench::CellRecord> record = bench::cell_record_from_json(text, "cell.json");
  if (!record) return;
  const std::string written = bench::to_json_text(*record);
  const Result<bench::CellRecord> again = bench::cell_record_from_json(written, "cell.json");
  demand(again.ok() && bench::to_json_text(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_table(text);
  read_as_record(text);
  return 0;
}
