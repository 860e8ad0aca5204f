#include "doctor/gpu_tools.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr size_t kMostGpus = 1024;

std::optional<bool> yes_or_no(std::string_view text) {
  const std::string word = lower(text);
  if (word == "yes" || word == "1") return true;
  if (word == "no" || word == "0") return false;
  return std::nullopt;
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  for (const std::string& cell : split(line, ',')) result.emplace_back(trim(cell));
  return result;
}

bool says_lost(std::string_view text) {
  const std::string word = lower(text);
  return word.find("gpu is lost") != std::string::npos ||
         word.find("unknown error") != std::string::npos;
}

// "GPU 2 (00000000:C1:00.0)"
std::string name_of(const std::string& index, const std::string& bus) {
  return "GPU " + printable(index, 20) + (bus.empty() ? "" : " (" + printable(bus, 40) + ")");
}

}  // namespace

NvidiaList parse_nvidia_list(std::string_view output) {
  NvidiaList list;
  for (const std::string& line : split_lines(output)) {
    const std::string_view text = trim(line);
    const size_t colon = text.find(':');
    if (text.starts_with("GPU ") && colon != std::string_view::npos &&
        parse_int(text.substr(4, colon - 4))) {
      ++list.gpus;
    }
    if (text.starts_with("MIG ") && text.find("Device") != std::string_view::npos) {
      ++list.mig_instances;
    }
  }
  return list;
}

std::vector<std::string> nvidia_fields() {
  return {"index",
          "pci.bus_id",
          "driver_version",
          "compute_mode",
          "ecc.errors.uncorrected.volatile.total",
          "retired_pages.double_bit.count",
          "retired_pages.pending"};
}

std::optional<std::string> unknown_nvidia_field(std::string_view output) {
  constexpr std::string_view before = "Field \"";
  constexpr std::string_view after = "\" is not a valid field to query";
  const size_t begin = output.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = output.find(after, begin);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(output.substr(begin + before.size(), end - begin - before.size()));
}

std::vector<GpuHealth> parse_nvidia_health(std::string_view output,
                                           const std::vector<std::string>& fields,
                                           std::string* driver) {
  std::vector<GpuHealth> gpus;
  for (const std::string& line : split_lines(output)) {
    const std::vector<std::string> row = cells(line);
    if (row.size() != fields.size() || gpus.size() >= kMostGpus) continue;
    const auto cell = [&](std::string_view field) {
      const auto at = std::find(fields.begin(), fields.end(), field);
      return at == fields.end() ? std::string() : row[static_cast<size_t>(at - fields.begin())];
    };
    GpuHealth gpu;
    gpu.bus_id = printable(cell("pci.bus_id"), 40);
    gpu.name = name_of(cell("index"), cell("pci.bus_id"));
    gpu.compute_mode = printable(cell("compute_mode"), 40);
    gpu.uncorrected_ecc = parse_int(cell("ecc.errors.uncorrected.volatile.total"));
    gpu.retired_pages = parse_int(cell("retired_pages.double_bit.count"));
    gpu.retirement_pending = yes_or_no(cell("retired_pages.pending"));
    gpu.lost = std::any_of(row.begin(), row.end(), says_lost);
    if (driver->empty() && parse_double(cell("driver_version").substr(0, 3))) {
      *driver = printable(cell("driver_version"), 40);
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string nvidia_remapped_fields() {
  return "gpu_bus_id,remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows.failure";
}

void add_nvidia_remapped(std::string_view output, std::vector<GpuHealth>* gpus) {
  for (const std::string& line : split_lines(output)) {
    const std::vector<std::string> row = cells(line);
    if (row.size() != 4) continue;
    for (GpuHealth& gpu : *gpus) {
      if (lower(gpu.bus_id) != lower(row[0])) continue;
      gpu.remapped_rows = parse_int(row[1]);
      gpu.remapping_pending = yes_or_no(row[2]);
      gpu.remapping_failed = yes_or_no(row[3]);
    }
  }
}

std::string parse_nvidia_cuda(std::string_view output) {
  for (const std::string& line : split_lines(output)) {
    if (!trim(line).starts_with("CUDA Version")) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view value = trim(std::string_view(line).substr(colon + 1));
    if (parse_double(value)) return std::string(value);
  }
  return "";
}

int parse_rocm_list(std::string_view output) {
  std::set<long> gpus;
  for (const std::string& line : split_lines(output)) {
    if (!line.starts_with("GPU[")) continue;
    const size_t end = line.find(']');
    if (end == std::string::npos) continue;
    const auto number = parse_int(std::string_view(line).substr(4, end - 4));
    if (number && gpus.size() < kMostGpus) gpus.insert(*number);
  }
  return static_cast<int>(gpus.size());
}

XpuList parse_xpu_list(std::string_view output) {
  XpuList list;
  for (const std::string& line : split_lines(output)) {
    const size_t at = line.find("Device Name:");
    if (at == std::string::npos || list.cards >= static_cast<int>(kMostGpus)) continue;
    ++list.cards;
    // Of the Data Center GPU Max series the 1550 has two tiles and the 1100 one.
    list.tiles += line.find("Max 1550", at) != std::string::npos ? 2 : 1;
  }
  return list;
}

std::optional<long> parse_ras_uncorrected(std::string_view text) {
  for (const std::string& line : split_lines(text)) {
    if (line.starts_with("ue:")) return parse_int(trim(std::string_view(line).substr(3)));
  }
  return std::nullopt;
}

std::string complaint(std::string_view out, std::string_view err) {
  for (const std::string_view text : {err, out}) {
    for (const std::string& line : split_lines(text)) {
      const std::string_view words = trim(line);
      if (words.find_first_not_of("+-=| ") == std::string_view::npos) continue;
      return printable(words, 200);
    }
  }
  return "";
}

}  // namespace ezpz::doctor
