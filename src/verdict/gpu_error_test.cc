#include "verdict/gpu_error.h"

#include <gtest/gtest.h>

namespace ezpz::verdict {
namespace {

GpuError of(const std::string& text) {
  Fact fact;
  fact.kind = Kind::gpu_fault;
  fact.text = text;
  return gpu_error(fact);
}

TEST(GpuErrorOf, MemoryAndBusIsTheHardwares) {
  for (const char* text :
       {"NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:41:00): 48, pid=1, DBE", "uncorrectable ECC error encountered"}) {
    EXPECT_EQ(of(text), GpuError::hardware) << text;
  }
}

TEST(GpuErrorOf, TheXidIsReadFromTheTextOrTheCode) {
  Fact f;
  f.text = "kernel: NVRM: Xid (PCI:0000:c1:00): 31, pid=1, Ch 8";
  EXPECT_EQ(gpu_error(f), GpuError::application);
  f.text = "Xid 79";
  EXPECT_EQ(gpu_error(f), GpuError::hardware);
  f.text = "fell off the bus";
  EXPECT_EQ(gpu_error(f), GpuError::hardware);
  f.pattern = "nvidia.xid";
  f.code = 43;
  EXPECT_EQ(gpu_error(f), GpuError::application);
}

TEST(GpuErrorOf, IllegalAccessIsTheProgramsOwn) {
  EXPECT_EQ(of("NVRM: Xid (PCI:0000:41:00): 31, pid=1, MMU Fault"), GpuError::application);
}

// On all ranks of one host, once from a kernel that brought the device down: the host is a suspect.
TEST(GpuErrorOf, ALostLevelZeroDeviceProvesNeither) {
  EXPECT_EQ(of("Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)"),
            GpuError::unproven);
  EXPECT_EQ(of("NVRM: Xid (PCI:0000:41:00): 119, Timeout waiting for RPC from GSP!"),
            GpuError::unproven);
}

TEST(GpuErrorOf, AnNvSwitchNumbersItsErrorsOtherwise) {
  EXPECT_EQ(of("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30"),
            GpuError::hardware);
}

TEST(GpuErrorOf, FirmwareThatStoppedIsNotProven) {
  EXPECT_EQ(of("NVRM: Xid (PCI:0000:41:00): 119, pid=1, Timeout after 6s of waiting for RPC"),
            GpuError::unproven);
}

}  // namespace
}  // namespace ezpz::verdict
