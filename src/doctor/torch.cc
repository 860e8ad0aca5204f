// "torch": which one the job's Python imports, and whether it was built for the GPUs that are here.
#include <fmt/core.h>

#include "base/text.h"
#include "doctor/node_sight.h"
#include "doctor/version.h"

namespace ezpz::doctor {
namespace {

constexpr const char* kCheck = "torch";

std::string built_for(const Torch& torch) {
  if (!torch.cuda.empty()) return "CUDA " + printable(torch.cuda, 40);
  if (!torch.hip.empty()) return "ROCm " + printable(torch.hip, 40);
  if (!torch.xpu.empty()) return "XPU " + printable(torch.xpu, 40);
  return "CPUs only";
}

// Empty: it fits the GPUs that were seen.
std::string misfit(const Torch& torch, const NodeSight& sight, const NodeContext& context) {
  const GpuVendor vendor = sight.gpus ? sight.gpus->vendor : GpuVendor::none;
  const bool cpu_only = torch.cuda.empty() && torch.hip.empty() && torch.xpu.empty();
  if (vendor == GpuVendor::nvidia && torch.cuda.empty()) return "the GPUs here are NVIDIA's";
  if (vendor == GpuVendor::amd && torch.hip.empty()) return "the GPUs here are AMD's";
  // An older torch for Intel's GPUs is a CPU build with an extension.
  if (vendor == GpuVendor::intel && torch.xpu.empty() && !cpu_only) {
    return "the GPUs here are Intel's";
  }
  if (vendor == GpuVendor::none && cpu_only && context.machine.gpus_per_node > 0) {
    return fmt::format("{}'s nodes have {} GPUs", context.machine.name,
                       context.machine.gpus_per_node);
  }
  return "";
}

bool newer_than_driver(const Torch& torch, const NodeSight& sight) {
  if (!sight.gpus || sight.gpus->vendor != GpuVendor::nvidia) return false;
  const auto built = version_numbers(torch.cuda);
  const auto served = version_numbers(sight.gpus->driver_cuda);
  return built && served && built->at(0) > served->at(0);
}

}  // namespace

std::vector<Finding> check_torch(const NodeSight& sight, const NodeContext& context) {
  const std::string activate =
      "activate the environment of the job, or give its python in the command";
  if (!sight.python) {
    return {{kCheck, Health::unknown,
             "Python could not be asked: " + printable(sight.python.why_not()), activate, ""}};
  }
  const Python& python = *sight.python;
  const std::string who = printable(python.path, 160) + " (" + printable(python.version, 20) + ")";
  if (!python.torch) {
    return {{kCheck, Health::unknown,
             who + ": torch could not be looked at: " + printable(python.torch.why_not()), activate,
             ""}};
  }
  if (!*python.torch) return {{kCheck, Health::unknown, who + " has no torch", activate, ""}};
  const Torch& torch = **python.torch;
  if (torch.version.empty()) {
    return {{kCheck, Health::unknown,
             printable(torch.path, 200) + " does not tell its version (version.py)",
             "python3 -c 'import torch; print(torch.__version__)'", ""}};
  }
  const std::string text = fmt::format("torch {} for {} in {}", printable(torch.version, 60),
                                       built_for(torch), printable(torch.path, 200));
  const std::string wrong = misfit(torch, sight, context);
  if (!wrong.empty()) {
    const bool seen = sight.gpus && sight.gpus->vendor != GpuVendor::none;
    return {{kCheck, seen ? Health::error : Health::warning, text + ", but " + wrong,
             "use the site's torch module, or install the build for these GPUs", ""}};
  }
  if (newer_than_driver(torch, sight)) {
    return {{kCheck, Health::warning,
             fmt::format("{}, but the driver serves CUDA {} at most: without a compatibility "
                         "package torch sees no GPU",
                         text, printable(sight.gpus->driver_cuda, 20)),
             "use a torch for CUDA " + printable(sight.gpus->driver_cuda, 20) +
                 ", or put CUDA's compat folder on LD_LIBRARY_PATH",
             ""}};
  }
  return {{kCheck, Health::ok, text, "", ""}};
}

}  // namespace ezpz::doctor
