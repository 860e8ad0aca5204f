// Which GPUs there are, by the vendors' tools and by the kernel. Tools may hang when a device does:
// each has its time. Files in /sys, /proc and /dev are the kernel's own and answer.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "doctor/gpu_tools.h"
#include "doctor/look.h"

namespace ezpz::doctor {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEntries = 4096;
constexpr size_t kSmallFile = 64U << 10U;

// Names in a folder, sorted; none when there is no such folder.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator() && names.size() < kMostEntries;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_of(const std::string& path) {
  const Result<std::string> text = read_file(path, kSmallFile);
  return text ? std::string(trim(*text)) : "";
}

// Names that are `prefix` and a number.
int count_numbered(const std::vector<std::string>& names, std::string_view prefix) {
  return static_cast<int>(
      std::count_if(names.begin(), names.end(), [prefix](const std::string& name) {
        return name.starts_with(prefix) &&
               parse_int(std::string_view(name).substr(prefix.size())).has_value();
      }));
}

// Processing accelerators and displays of a vendor, by the kernel's list of PCI devices.
int on_bus(std::string_view vendor) {
  const std::string root = "/sys/bus/pci/devices/";
  int count = 0;
  for (const std::string& name : names_in(root)) {
    if (text_of(root + name + "/vendor") != vendor) continue;
    const std::string kind = text_of(root + name + "/class");
    // 0x0302: 3D controller, 0x0380: other display, 0x1200: accelerator. A VGA controller (0x0300)
    // of a server is its console's, but for NVIDIA's and AMD's workstation cards.
    const bool accelerator =
        kind.starts_with("0x0302") || kind.starts_with("0x0380") || kind.starts_with("0x1200");
    if (accelerator || (kind.starts_with("0x0300") && vendor != "0x8086")) ++count;
  }
  return count;
}

std::string trouble_of(const std::string& tool, const HelperResult& result) {
  const std::string words = complaint(result.out, result.err);
  const bool own_words = result.started && !result.timed_out && !words.empty();
  return tool + ": " + (own_words ? words : printable(result.trouble, 200));
}

void ask_nvidia_health(const AskHelper& ask, double patience_s, Gpus* gpus) {
  std::vector<std::string> fields = nvidia_fields();
  for (size_t tries = fields.size(); tries > 0 && !fields.empty(); --tries) {
    const HelperResult result =
        ask({"nvidia-smi", "--query-gpu=" + join(fields, ","), "--format=csv,noheader,nounits"},
            patience_s);
    const auto unknown = unknown_nvidia_field(result.out + result.err);
    if (unknown) {
      std::erase(fields, *unknown);
      continue;
    }
    // A lost GPU makes the tool fail after it has told of the others.
    gpus->health = parse_nvidia_health(result.out, fields, &gpus->driver);
    if (!result.usable()) gpus->tool_trouble.push_back(trouble_of("nvidia-smi", result));
    if (result.timed_out) return;
    break;
  }
  const HelperResult remapped = ask(
      {"nvidia-smi", "--query-remapped-rows=" + nvidia_remapped_fields(), "--format=csv,noheader"},
      patience_s);
  if (remapped.usable()) add_nvidia_remapped(remapped.out, &gpus->health);
  const HelperResult compute = ask({"nvidia-smi", "-q", "-d", "COMPUTE"}, patience_s);
  if (compute.usable()) gpus->driver_cuda = parse_nvidia_cuda(compute.out);
}

// True when there is a sign of NVIDIA's hardware or tools.
bool look_at_nvidia(const AskHelper& ask, double patience_s, Gpus* gpus) {
  gpus->on_bus = on_bus("0x10de");
  const int devices = count_numbered(names_in("/dev"), "nvidia");
  const bool has_tool = !find_program("nvidia-smi").empty();
  if (!has_tool && devices == 0 && gpus->on_bus == 0) return false;
  gpus->vendor = GpuVendor::nvidia;
  gpus->devices = gpus->cards = devices;
  gpus->source = "/dev/nvidia*";
  if (!has_tool) {
    if (devices == 0) {
      gpus->tool_trouble.push_back("no /dev/nvidia* and no nvidia-smi: the driver is not loaded");
    }
    return true;
  }
  const HelperResult listed = ask({"nvidia-smi", "-L"}, patience_s);
  const NvidiaList list = parse_nvidia_list(listed.out);
  if (!listed.usable()) {
    gpus->tool_trouble.push_back(trouble_of("nvidia-smi", listed));
    // What it could list before it failed is more than nothing, and what it does not is not there.
    if (!listed.timed_out) {
      gpus->devices = gpus->cards = list.gpus;
      gpus->source = "nvidia-smi -L";
    }
    return true;
  }
  gpus->source = "nvidia-smi -L";
  gpus->cards = list.gpus;
  gpus->mig = list.mig_instances > 0;
  gpus->devices = gpus->mig ? list.mig_instances : list.gpus;
  ask_nvidia_health(ask, patience_s, gpus);
  return true;
}

// AMD: the kernel's compute topology has a node for each die; those of CPUs have gpu_id 0.
int kfd_gpus() {
  const std::string root = "/sys/class/kfd/kfd/topology/nodes/";
  int count = 0;
  for (const std::string& name : names_in(root)) {
    const std::string id = text_of(root + name + "/gpu_id");
    if (!id.empty() && id != "0") ++count;
  }
  return count;
}

void look_at_amd_errors(Gpus* gpus) {
  for (const std::string& name : names_in("/sys/class/drm")) {
    if (count_numbered({name}, "card") == 0) continue;
    const std::string text = text_of("/sys/class/drm/" + name + "/device/ras/umc_err_count");
    if (text.empty()) continue;
    GpuHealth health;
    health.name = name;
    health.uncorrected_ecc = parse_ras_uncorrected(text);
    gpus->health.push_back(std::move(health));
  }
}

bool look_at_amd(const AskHelper& ask, double patience_s, Gpus* gpus) {
  gpus->on_bus = on_bus("0x1002");
  const int dies = kfd_gpus();
  const bool has_tool = !find_program("rocm-smi").empty();
  if (!has_tool && dies == 0) return false;  // a display that computes nothing
  gpus->vendor = GpuVendor::amd;
  gpus->devices = dies;
  gpus->source = "/sys/class/kfd";
  look_at_amd_errors(gpus);
  if (!has_tool) return true;
  const HelperResult listed = ask({"rocm-smi", "--showid"}, patience_s);
  if (!listed.usable()) {
    gpus->tool_trouble.push_back(trouble_of("rocm-smi", listed));
    return true;
  }
  gpus->devices = parse_rocm_list(listed.out);
  gpus->source = "rocm-smi --showid";
  return true;
}

// Intel: a card's tiles are gt/gt0, gt/gt1 under i915 and device/tile0, device/tile1 under xe.
void count_intel(Gpus* gpus) {
  for (const std::string& name : names_in("/sys/class/drm")) {
    if (count_numbered({name}, "card") == 0) continue;
    const std::string card = "/sys/class/drm/" + name;
    if (text_of(card + "/device/vendor") != "0x8086") continue;
    if (!text_of(card + "/device/class").starts_with("0x0380")) continue;
    ++gpus->cards;
    const int tiles = std::max(count_numbered(names_in(card + "/gt"), "gt"),
                               count_numbered(names_in(card + "/device"), "tile"));
    gpus->devices += std::max(tiles, 1);
  }
}

bool look_at_intel(const AskHelper& ask, double patience_s, Gpus* gpus) {
  gpus->on_bus = on_bus("0x8086");
  count_intel(gpus);
  gpus->source = "/sys/class/drm";
  const bool has_tool = !find_program("xpu-smi").empty();
  if (!has_tool && gpus->devices == 0) return false;
  gpus->vendor = GpuVendor::intel;
  if (!has_tool) return true;
  const HelperResult listed = ask({"xpu-smi", "discovery"}, patience_s);
  if (!listed.usable()) {
    gpus->tool_trouble.push_back(trouble_of("xpu-smi", listed));
    return true;
  }
  const XpuList list = parse_xpu_list(listed.out);
  // The kernel knows the tiles, the tool the cards that answer.
  if (gpus->devices == 0 || list.cards < gpus->cards) {
    gpus->cards = list.cards;
    gpus->devices = list.tiles;
    gpus->source = "xpu-smi discovery";
  }
  return true;
}

}  // namespace

Seen<Gpus> look_at_gpus(const AskHelper& ask, double patience_s) {
  if (!fs::exists("/sys/bus") && !fs::exists("/proc/self")) {
    return Seen<Gpus>::not_seen("neither /sys nor /proc is mounted");
  }
  for (const auto look : {look_at_nvidia, look_at_amd, look_at_intel}) {
    Gpus gpus;
    if (look(ask, patience_s, &gpus)) return gpus;
  }
  Gpus none;
  none.source = "no vendor's tool in PATH, nothing in /dev and /sys";
  return none;
}

}  // namespace ezpz::doctor
