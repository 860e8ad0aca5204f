#include "bench/device.h"

#include <algorithm>

#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr std::string_view kH100Sheet = "NVIDIA H100 Tensor Core GPU Datasheet";
constexpr std::string_view kMax1550 = "Intel Data Center GPU Max Series Technical Overview";

Device gpu(std::string_view name, double peak, std::string_view what, std::string_view source,
           std::vector<std::string_view> words) {
  Device device;
  device.name = name;
  device.peak_tflops = peak;
  device.what = what;
  device.source = source;
  device.driver_words = std::move(words);
  return device;
}

// The sheets of Hopper and later print figures with sparsity: half of that is dense.
std::vector<Device> make_devices() {
  std::vector<Device> all{
      gpu("A100", 312, "SXM and PCIe, 40 and 80 GB", "NVIDIA A100 Tensor Core GPU Datasheet",
          {"a100"}),
      gpu("H100-NVL", 835, "NVL; 1671 with sparsity", kH100Sheet, {"h100 nvl", "h100-nvl"}),
      gpu("H100-PCIe", 756, "PCIe; 1513 with sparsity", kH100Sheet, {"h100 pcie", "h100-pcie"}),
      gpu("H100", 989, "SXM; 1979 with sparsity", kH100Sheet, {"h100"}),
      gpu("H200", 989, "SXM; 1979 with sparsity", "NVIDIA H200 Tensor Core GPU Datasheet",
          {"h200"}),
      gpu("B200", 2250, "SXM; 4500 with sparsity", "NVIDIA DGX B200 Datasheet", {"b200"}),
      gpu("L40S", 362, "733 with sparsity", "NVIDIA L40S Datasheet", {"l40s"}),
      gpu("MI250X", 191.5, "one GCD, half of a card's 383", "AMD Instinct MI250X Data Sheet",
          {"mi250x"}),
      gpu("MI300X", 1307, "1307.4", "AMD Instinct MI300X Data Sheet", {"mi300x"}),
      gpu("MI325X", 1307, "1307.4", "AMD Instinct MI325X Data Sheet", {"mi325x"}),
      gpu("MI355X", 2500, "2.5 PFLOP/s", "AMD Instinct MI355X Data Sheet", {"mi355x"}),
  };
  Device pvc = gpu("PVC", 0, "one tile: 512 operations a cycle and compute unit at 1.3 GHz",
                   kMax1550, {"gpu max", "ponte vecchio"});
  pvc.flop_per_unit_and_cycle = 512;
  pvc.clock_ghz = 1.3;
  pvc.usual_units = 448;
  all.push_back(pvc);
  return all;
}

}  // namespace

const std::vector<Device>& devices() {
  static const std::vector<Device> all = make_devices();
  return all;
}

const Device* find_device(std::string_view name) {
  const std::string wanted = lower(name);
  for (const Device& device : devices()) {
    if (lower(device.name) == wanted) return &device;
  }
  for (const Device& device : devices()) {
    const auto& words = device.driver_words;
    const bool fits = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return wanted.find(word) != std::string::npos;
    });
    if (fits) return &device;
  }
  return nullptr;
}

double peak_tflops(const Device& device, int compute_units) {
  if (device.peak_tflops > 0) return device.peak_tflops;
  const int units = compute_units > 0 ? compute_units : device.usual_units;
  return device.flop_per_unit_and_cycle * units * device.clock_ghz / 1000;
}

}  // namespace ezpz::bench
