// "gpus": are there as many as there should be? "gpu-health": does their memory hold?
// "gpu-visibility": does a variable hide some of them from the program?
#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/node_sight.h"
#include "doctor/safe_text.h"

namespace ezpz::doctor {
namespace {

const char* vendor_name(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::nvidia:
      return "NVIDIA";
    case GpuVendor::amd:
      return "AMD";
    case GpuVendor::intel:
      return "Intel";
    case GpuVendor::none:
      break;
  }
  return "no";
}

std::string replace_node(const NodeSight& sight) {
  return "ezpz launch --exclude " + printable(sight.hostname, 80) +
         " ..., and report the node to the site";
}

// "12 devices (6 cards)"
std::string count_text(const Gpus& gpus) {
  std::string text = fmt::format("{} {} {}", gpus.devices, vendor_name(gpus.vendor),
                                 gpus.devices == 1 ? "device" : "devices");
  if (gpus.cards > 0 && gpus.cards != gpus.devices) text += fmt::format(" on {} cards", gpus.cards);
  return text + " (" + printable(gpus.source, 80) + ")";
}

// What the job was given, as far as SLURM says; else what the machine's table says.
struct Wanted {
  int count = 0;  // 0: nobody says
  std::string who;
};

Wanted wanted(const NodeSight& sight, const NodeContext& context) {
  const auto granted = site::get(sight.env, "SLURM_GPUS_ON_NODE");
  const auto count = granted ? parse_int(*granted) : std::nullopt;
  if (count && *count > 0 && *count < 10'000) {
    return {static_cast<int>(*count), "SLURM_GPUS_ON_NODE"};
  }
  return {context.machine.gpus_per_node, context.machine.name + "'s table"};
}

Finding count_finding(const NodeSight& sight, const NodeContext& context) {
  const std::string check = "gpus";
  if (!sight.gpus) {
    return {check, Health::unknown, "the GPUs could not be counted: " + sight.gpus.why_not(),
            "run nvidia-smi -L, rocm-smi or xpu-smi discovery by hand", ""};
  }
  const Gpus& gpus = *sight.gpus;
  const Wanted want = wanted(sight, context);
  // A login node has other hardware than what the table tells of.
  const Health missing = context.in_job ? Health::error : Health::warning;
  const std::string elsewhere =
      context.in_job ? "" : " (not in a job: the table tells of compute nodes)";
  if (!gpus.tool_trouble.empty()) {
    const std::string words = join(gpus.tool_trouble, "; ");
    const bool none_left = gpus.devices == 0 || gpus.devices < want.count;
    return {check, none_left ? missing : Health::warning,
            fmt::format("the driver does not answer properly: {}; {} seen{}", printable(words),
                        count_text(gpus), elsewhere),
            replace_node(sight), ""};
  }
  if (gpus.vendor == GpuVendor::none) {
    if (want.count == 0) {
      return {check, Health::ok, "no GPU here, and nobody says there should be one", "", ""};
    }
    return {check, missing,
            fmt::format("no GPU found, {} says {} a node ({}){}", want.who, want.count,
                        printable(gpus.source, 80), elsewhere),
            context.in_job ? replace_node(sight) : "ask again on a compute node of a job", ""};
  }
  if (want.count > 0 && gpus.devices < want.count) {
    return {check, missing,
            fmt::format("{}, {} says {}{}", count_text(gpus), want.who, want.count, elsewhere),
            context.in_job ? replace_node(sight) : "ask again on a compute node of a job", ""};
  }
  if (gpus.on_bus > gpus.cards && gpus.cards > 0 && want.who != "SLURM_GPUS_ON_NODE") {
    return {check, Health::warning,
            fmt::format("{}, but the PCI bus has {}: a device is there and does not answer, or is "
                        "not the job's",
                        count_text(gpus), gpus.on_bus),
            "look at dmesg for 'NVRM: Xid' or amdgpu errors, or ask for all GPUs of the node", ""};
  }
  const int table = context.machine.gpus_per_node;
  if (table > 0 && want.count < table && context.in_job) {
    return {
        check, Health::warning,
        fmt::format("the job was given {} of the node's {} GPUs ({})", want.count, table, want.who),
        fmt::format("sbatch --gpus-per-node={}", table), ""};
  }
  if (gpus.mig) {
    return {check, Health::warning,
            count_text(gpus) + ": the GPUs are cut into MIG instances, which NCCL cannot join",
            "ask for nodes with MIG off", ""};
  }
  std::string text = count_text(gpus);
  if (want.count > 0) text += ", as " + want.who + " says";
  if (!gpus.driver.empty()) text += ", driver " + printable(gpus.driver, 40);
  return {check, Health::ok, text, "", ""};
}

struct Ailment {
  Health health;
  std::string text;
};

// Worst first.
std::vector<Ailment> ailments_of(const GpuHealth& gpu) {
  std::vector<Ailment> found;
  const auto add = [&](bool is_so, Health health, const std::string& text) {
    if (is_so) found.push_back({health, gpu.name + ": " + text});
  };
  add(gpu.lost, Health::error, "lost to the driver");
  add(gpu.remapping_failed.value_or(false), Health::error,
      "a row of its memory could not be remapped");
  add(gpu.compute_mode == "Prohibited", Health::error,
      "compute mode Prohibited: no program may use it");
  add(gpu.uncorrected_ecc.value_or(0) > 0, Health::error,
      fmt::format("{} uncorrectable memory errors since the driver was loaded",
                  gpu.uncorrected_ecc.value_or(0)));
  add(gpu.remapping_pending.value_or(false), Health::warning,
      "rows of its memory wait to be remapped: it needs a reset");
  add(gpu.retirement_pending.value_or(false), Health::warning,
      "pages of its memory wait to be retired: it needs a reset");
  // Cards are replaced near 60 retired pages.
  add(gpu.retired_pages.value_or(0) >= 60, Health::warning,
      fmt::format("{} pages retired for double-bit errors", gpu.retired_pages.value_or(0)));
  return found;
}

Finding health_finding(const NodeSight& sight, const NodeContext& context) {
  const std::string check = "gpu-health";
  if (!sight.gpus) {
    return {check, Health::unknown, "the GPUs could not be asked: " + sight.gpus.why_not(),
            "run nvidia-smi -q or rocm-smi by hand", ""};
  }
  const Gpus& gpus = *sight.gpus;
  if (gpus.vendor == GpuVendor::none) {
    if (wanted(sight, context).count == 0) return {check, Health::ok, "no GPU here", "", ""};
    return {check, Health::unknown, "no GPU was found that could be asked",
            "ask again on a compute node of a job", ""};
  }
  std::vector<Ailment> all;
  int told = 0;
  for (const GpuHealth& gpu : gpus.health) {
    const std::vector<Ailment> found = ailments_of(gpu);
    all.insert(all.end(), found.begin(), found.end());
    if (gpu.uncorrected_ecc || gpu.remapping_pending || gpu.retirement_pending || gpu.lost) ++told;
  }
  if (!all.empty()) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Ailment& a, const Ailment& b) { return a.health > b.health; });
    std::vector<std::string> texts;
    texts.reserve(all.size());
    for (const Ailment& ailment : all) texts.push_back(ailment.text);
    return {check, all.front().health, printable(join(texts, "; ")), replace_node(sight), ""};
  }
  if (told == 0) {
    return {
        check, Health::unknown,
        fmt::format("nobody tells of memory errors of these {} devices", vendor_name(gpus.vendor)),
        gpus.vendor == GpuVendor::nvidia ? "run nvidia-smi -q -d ECC,ROW_REMAPPER by hand"
        : gpus.vendor == GpuVendor::amd  ? "run rocm-smi --showrasinfo all by hand"
                                         : "run xpu-smi health -l by hand",
        ""};
  }
  return {check, Health::ok,
          fmt::format("{} GPUs asked: no uncorrectable error, none waits for a reset", told), "",
          ""};
}

// The devices a list such as "0,1,3" lets a program see; nothing: it does not say.
std::optional<int> count_visible(const std::string& value) {
  int count = 0;
  for (const std::string& part : split(value, ',')) {
    const std::string_view word = trim(part);
    if (word.empty() || word.starts_with('-')) break;  // an invalid entry ends the list
    ++count;
  }
  return count;
}

Finding visibility_finding(const NodeSight& sight, const NodeContext& context) {
  const std::string check = "gpu-visibility";
  const std::vector<std::string> variables = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                              "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};
  const int wanted_count = wanted(sight, context).count;
  const int there = sight.gpus ? sight.gpus->devices : 0;
  const int devices = there > 0 ? there : wanted_count;
  std::vector<std::string> texts;
  for (const std::string& name : variables) {
    const auto found = sight.env.find(name);
    if (found == sight.env.end()) continue;
    const int visible = count_visible(found->second).value_or(0);
    texts.push_back(shown(name, found->second));
    if (devices == 0) continue;
    if (visible < devices) {
      return {check, visible == 0 ? Health::error : Health::warning,
              fmt::format("{} shows a program {} of {} devices", shown(name, found->second),
                          visible, devices),
              "unset " + name + "", ""};
    }
  }
  return {check, Health::ok,
          texts.empty() ? "no variable hides a device" : join(texts, ", ") + " hides none", "", ""};
}

}  // namespace

std::vector<Finding> check_gpus(const NodeSight& sight, const NodeContext& context) {
  return {count_finding(sight, context), health_finding(sight, context),
          visibility_finding(sight, context)};
}

}  // namespace ezpz::doctor
