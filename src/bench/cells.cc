#include "bench/cells.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/text.h"
#include "base/toml.h"
#include "bench/model.h"

namespace ezpz::bench {
namespace {

struct FlagName {
  std::string_view flag;
  std::string_view name;
};
// How trainers call the same thing: ezpz-train, the Python tool's examples, Hugging Face's.
constexpr FlagName kFlagNames[] = {
    {"--model", "model"},
    {"--model_name_or_path", "model"},
    {"--batch-size", "batch"},
    {"--batch", "batch"},
    {"--per_device_train_batch_size", "batch"},
    {"--seq-len", "seq"},
    {"--seq", "seq"},
    {"--seq-length", "seq"},
    {"--block_size", "seq"},
    {"--tp", "tp"},
    {"--train-iters", "steps"},
    {"--steps", "steps"},
    {"--max_steps", "steps"},
    {"--dataset", "dataset"},
    {"--grad-accum", "grad_accum"},
    {"--gradient_accumulation_steps", "grad_accum"},
    {"--lora-rank", "lora_rank"},
    {"--lora-target", "lora_target"},
    {"--compile", "compile"},
    {"--streaming", "streaming"},
};

std::string_view name_of(std::string_view flag) {
  for (const FlagName& each : kFlagNames) {
    if (each.flag == flag) return each.name;
  }
  return {};
}

bool known_name(std::string_view name) {
  return std::any_of(std::begin(kFlagNames), std::end(kFlagNames),
                     [&](const FlagName& each) { return each.name == name; });
}

// "agpt_2b" and "agpt-2b" are one model.
std::string plain(std::string_view value) {
  std::string text = lower(value);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

// The digits behind a prefix, as they stand: "2048" of "seq2048".
std::string number_behind(std::string_view part, std::string_view prefix) {
  if (part.substr(0, prefix.size()) != prefix) return "";
  const std::string_view digits = part.substr(prefix.size());
  return parse_int(digits) ? std::string(digits) : std::string();
}

Cell cell_of_label(std::string_view label) {
  Cell cell;
  cell.label = label;
  for (const std::string& part : split(label, '/')) {
    if (cell.says.empty() && find_model(part) != nullptr) cell.says["model"] = part;
    const std::string batch = number_behind(part, "bs"), seq = number_behind(part, "seq"),
                      tp = number_behind(part, "tp");
    if (!batch.empty()) cell.says["batch"] = batch;
    if (!seq.empty()) cell.says["seq"] = seq;
    if (!tp.empty()) cell.says["tp"] = tp;
  }
  return cell;
}

Error wrong(const std::string& name, const std::string& what) {
  return Error{what, "benchmarks/" + name + ".toml", ""};
}

Result<Cell> read_cell(const std::string& label, const toml::node& node, const std::string& file) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return wrong(file, "not a table: " + label);
  Cell cell;
  cell.label = label;
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    if (name == "nodes") {
      const toml::array* const list = value.as_array();
      if (list == nullptr) return wrong(file, "nodes is a list: " + label);
      for (const toml::node& each : *list) {
        const auto count = each.value_exact<int64_t>();
        if (!count || *count < 1 || *count > 1'000'000) return wrong(file, "not a number of nodes");
        cell.nodes.push_back(static_cast<int>(*count));
      }
    } else if ((name == "foreign" || name == "required") && value.is_array()) {
      std::set<std::string>& into = name == "foreign" ? cell.foreign : cell.required;
      for (const toml::node& each : *value.as_array()) into.insert(each.value_or(std::string()));
    } else if (name == "whole_command" && value.is_boolean()) {
      cell.whole_command = *value.value_exact<bool>();
    } else if (known_name(name) && value.is_integer()) {
      cell.says[name] = std::to_string(*value.value_exact<int64_t>());
    } else if (known_name(name) && value.is_string()) {
      cell.says[name] = *value.value_exact<std::string>();
    } else {
      return wrong(file, join({"not understood: ", name, " of ", label}, ""));
    }
  }
  return cell;
}

}  // namespace

Result<Benchmark> parse_benchmark(std::string_view toml_text, const std::string& name) {
  const toml::parse_result parsed = toml::parse(toml_text);
  if (!parsed) return wrong(name, std::string(parsed.error().description()));
  Benchmark benchmark;
  benchmark.name = name;
  for (const auto& [key, value] : parsed.table()) {
    if (key == "free" && value.is_array()) {
      for (const toml::node& flag : *value.as_array()) {
        benchmark.free.insert(flag.value_or(std::string()));
      }
    } else if (key == "cell" && value.is_table()) {
      for (const auto& [label, node] : *value.as_table()) {
        Result<Cell> cell = read_cell(std::string(label.str()), node, name);
        if (!cell) return cell.error();
        benchmark.cells.push_back(std::move(*cell));
      }
    } else {
      return wrong(name, "not understood: " + std::string(key.str()));
    }
  }
  return benchmark;
}

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all = [] {
    std::vector<Benchmark> read;
    for (const embedded::File& file : embedded::benchmarks()) {
      Result<Benchmark> benchmark =
          parse_benchmark(file.text, std::string(file.name.substr(0, file.name.rfind('.'))));
      if (benchmark) read.push_back(std::move(*benchmark));  // a test reads every file
    }
    return read;
  }();
  return all;
}

FoundCell find_cell(std::string_view label) {
  for (const Benchmark& benchmark : benchmarks()) {
    for (const Cell& cell : benchmark.cells) {
      if (cell.label == label) return {cell, benchmark.free, true};
    }
  }
  return {cell_of_label(label), {}, false};
}

Said what_command_says(const std::vector<std::string>& command) {
  Said said;
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.compare(0, 2, "--") != 0 || word.size() == 2) continue;
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < command.size() && command[i + 1].compare(0, 1, "-") != 0) {
      value = command[++i];
    }
    const std::string_view name = name_of(flag);
    // Of a flag given twice the last counts, as programs do.
    if (name.empty()) {
      said.others[flag] = value;
    } else {
      said.known[std::string(name)] = value.empty() ? "yes" : value;
    }
  }
  return said;
}

std::vector<std::string> departures(const FoundCell& found, const std::vector<std::string>& command,
                                    std::optional<int> nodes) {
  std::vector<std::string> list;
  const Cell& cell = found.cell;
  const Said said = what_command_says(command);
  for (const auto& [name, wanted] : cell.says) {
    const auto value = said.known.find(name);
    if (value == said.known.end()) {
      const bool must = cell.whole_command || cell.required.count(name) > 0;
      if (must && !command.empty())
        list.push_back(join({"no ", name, ", which should be ", wanted}, ""));
      continue;
    }
    if (plain(value->second) != plain(wanted)) {
      list.push_back(join({name, " ", printable(value->second, 80), " instead of ", wanted}, ""));
    }
  }
  if (cell.whole_command && !command.empty()) {
    for (const auto& [name, value] : said.known) {
      if (cell.says.count(name) == 0) list.push_back("also " + name + " " + printable(value, 80));
    }
  }
  for (const auto& [flag, value] : said.others) {
    const bool foreign = cell.foreign.count(flag) > 0;
    if (!foreign && (!cell.whole_command || found.free.count(flag) > 0)) continue;
    list.push_back("also " + printable(flag, 80) +
                   (value.empty() ? "" : " " + printable(value, 80)));
  }
  if (nodes && !cell.nodes.empty() &&
      std::find(cell.nodes.begin(), cell.nodes.end(), *nodes) == cell.nodes.end()) {
    std::vector<std::string> wanted;
    for (const int count : cell.nodes) wanted.push_back(std::to_string(count));
    list.push_back(std::to_string(*nodes) + " nodes instead of " + join(wanted, " or "));
  }
  return list;
}

}  // namespace ezpz::bench
