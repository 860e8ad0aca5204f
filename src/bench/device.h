// What a device can do at most in dense bfloat16 matrix products: what MFU is a share of.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ezpz::bench {

struct Device {
  std::string_view name;   // "A100"
  double peak_tflops = 0;  // of what one rank owns; 0: by compute units
  // Of devices that are told by their compute units (Intel's GPUs, a rank owning a tile).
  double flop_per_unit_and_cycle = 0;
  double clock_ghz = 0;
  int usual_units = 0;
  std::string_view what;    // "SXM and PCIe", "per GCD"
  std::string_view source;  // the vendor's sheet
  // What its driver calls it holds one of these words, in lower case; more telling rows stand
  // first.
  std::vector<std::string_view> driver_words;
};
const std::vector<Device>& devices();

// By name, any case, or by what a driver calls it ("NVIDIA A100-SXM4-40GB"). Null: none fits.
const Device* find_device(std::string_view name);

// compute_units only counts where the peak goes by them; 0: the usual number.
double peak_tflops(const Device&, int compute_units = 0);

}  // namespace ezpz::bench
