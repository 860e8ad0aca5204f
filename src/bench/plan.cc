#include "bench/plan.h"

#include "bench/amsc.h"

namespace ezpz::bench {
namespace {

struct Setting {
  std::string_view name;
  std::string_view flag;
};
// In the order in which they are given.
constexpr Setting kSettings[] = {
    {"model", "--model"},
    {"batch", "--batch-size"},
    {"seq", "--seq-len"},
    {"tp", "--tp"},
    {"steps", "--train-iters"},
    {"dataset", "--dataset"},
    {"grad_accum", "--grad-accum"},
    {"lora_rank", "--lora-rank"},
    {"seed", "--seed"},
    {"lora_target", "--lora-target"},
};

// {dir} is all that is replaced.
std::string with_dir(const std::string& text, const std::string& dir) {
  constexpr std::string_view mark = "{dir}";
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, from)) {
    out.append(text, from, at - from).append(dir);
    from = at + mark.size();
  }
  return out.append(text, from, std::string::npos);
}

}  // namespace

std::vector<std::string> trainer_settings() {
  std::vector<std::string> names;
  for (const Setting& setting : kSettings) names.emplace_back(setting.name);
  return names;
}

CellPlan plan_cell(const TableCell& cell, const PlanInput& input) {
  CellPlan plan;
  std::vector<std::string>& argv = plan.argv;
  argv = {input.ezpz,    "launch",  "--log-dir",
          input.run_dir, "--grace", short_number(input.grace_s, 3)};
  const auto text = [&argv](const char* flag, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {flag, value});
  };
  const auto count = [&text](const char* flag, int value) {
    if (value > 0) text(flag, std::to_string(value));
  };
  text("--launcher", cell.launcher);
  text("--hostfile", cell.hostfile);
  count("--nnodes", cell.nodes);
  count("--ppn", cell.ppn);
  count("-n", cell.ranks);
  for (const auto& [name, value] : cell.env) {
    const std::string whole = with_dir(value, input.run_dir);
    if (input.is_secret != nullptr && input.is_secret(name)) {
      plan.env[name] = whole;
      text("--env", name);
    } else {
      text("--env", name + "=" + whole);
    }
  }
  for (const std::string& word : cell.launch) argv.push_back(with_dir(word, input.run_dir));
  argv.emplace_back("--");
  for (const std::string& word : cell.command) argv.push_back(with_dir(word, input.run_dir));
  if (!cell.command.empty()) return plan;
  argv.push_back(cell.trainer.empty() ? input.trainer : cell.trainer);
  for (const Setting& setting : kSettings) {
    const auto value = cell.settings.find(std::string(setting.name));
    if (value != cell.settings.end()) text(std::string(setting.flag).c_str(), value->second);
  }
  for (const std::string& word : cell.args) argv.push_back(with_dir(word, input.run_dir));
  return plan;
}

std::string metrics_of(const TableCell& cell, const std::string& run_dir) {
  const std::string path = with_dir(cell.metrics, run_dir);
  return path.empty() || path[0] == '/' ? path : run_dir + "/" + path;
}

}  // namespace ezpz::bench
