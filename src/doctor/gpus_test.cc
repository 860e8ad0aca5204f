#include <gtest/gtest.h>

#include "doctor/gpu_tools.h"
#include "doctor/testing.h"

namespace ezpz::doctor {
namespace {

// ---- what the tools print

TEST(GpuTools, CountsNvidiasGpusAndMigInstances) {
  const NvidiaList whole = parse_nvidia_list(
      "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)\n");
  EXPECT_EQ(whole.gpus, 2);
  EXPECT_EQ(whole.mig_instances, 0);
  const NvidiaList cut = parse_nvidia_list(
      "GPU 0: NVIDIA A100 (UUID: GPU-1)\n  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n"
      "  MIG 1g.5gb      Device  1: (UUID: MIG-2)\n");
  EXPECT_EQ(cut.gpus, 1);
  EXPECT_EQ(cut.mig_instances, 2);
  EXPECT_EQ(parse_nvidia_list("No devices were found\n").gpus, 0);
}

TEST(GpuTools, ReadsNvidiasHealthAndWhatIsNotSupportedIsNotTold) {
  std::string driver;
  const std::vector<GpuHealth> gpus = parse_nvidia_health(
      "0, 00000000:03:00.0, 550.127.08, Default, 0, 0, No\n"
      "1, 00000000:41:00.0, 550.127.08, Default, 3, [N/A], [N/A]\n"
      "2, 00000000:82:00.0, [GPU is lost], [GPU is lost], [GPU is lost], [N/A], [N/A]\n"
      "not a row\n",
      nvidia_fields(), &driver);
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(driver, "550.127.08");
  EXPECT_EQ(gpus[0].uncorrected_ecc, 0);
  EXPECT_EQ(gpus[0].retirement_pending, false);
  EXPECT_EQ(gpus[1].uncorrected_ecc, 3);
  EXPECT_EQ(gpus[1].retired_pages, std::nullopt);
  EXPECT_EQ(gpus[1].retirement_pending, std::nullopt);
  EXPECT_TRUE(gpus[2].lost);
  EXPECT_EQ(gpus[2].name, "GPU 2 (00000000:82:00.0)");
}

TEST(GpuTools, PutsRemappedRowsToTheGpuOfThatBus) {
  std::vector<GpuHealth> gpus(2);
  gpus[0].bus_id = "00000000:03:00.0";
  gpus[1].bus_id = "00000000:C1:00.0";
  add_nvidia_remapped("00000000:c1:00.0, 2, Yes, No\n", &gpus);
  EXPECT_EQ(gpus[0].remapping_pending, std::nullopt);
  EXPECT_EQ(gpus[1].remapped_rows, 2);
  EXPECT_EQ(gpus[1].remapping_pending, true);
  EXPECT_EQ(gpus[1].remapping_failed, false);
}

TEST(GpuTools, TellsWhichFieldADriverDoesNotKnow) {
  EXPECT_EQ(
      unknown_nvidia_field("Field \"retired_pages.pending\" is not a valid field to query.\n"),
      "retired_pages.pending");
  EXPECT_EQ(unknown_nvidia_field("0, 1, 2\n"), std::nullopt);
}

TEST(GpuTools, ReadsTheOthers) {
  EXPECT_EQ(parse_nvidia_cuda("Driver Version : 550\nCUDA Version      : 12.4\n"), "12.4");
  EXPECT_EQ(parse_nvidia_cuda("CUDA Version : Not Found\n"), "");
  EXPECT_EQ(parse_rocm_list("GPU[0]\t\t: Device ID: 0x7408\nGPU[0]\t\t: GPU ID: 0x1\n"
                            "GPU[1]\t\t: Device ID: 0x7408\n=== End ===\n"),
            2);
  const XpuList xpu = parse_xpu_list(
      "| 0 | Device Name: Intel(R) Data Center GPU Max 1550 |\n"
      "| 1 | Device Name: Intel(R) Data Center GPU Max 1100 |\n");
  EXPECT_EQ(xpu.cards, 2);
  EXPECT_EQ(xpu.tiles, 3);
  EXPECT_EQ(parse_ras_uncorrected("ue: 7\nce: 12\n"), 7);
  EXPECT_EQ(parse_ras_uncorrected("feature mask: 0x1\n"), std::nullopt);
}

TEST(GpuTools, AComplaintIsTheFirstLineThatSaysSomethingWithoutControlBytes) {
  EXPECT_EQ(complaint("+-----+\nFailed to initialize NVML:\x1b[31m Unknown Error\n", "\n"),
            "Failed to initialize NVML:?[31m Unknown Error");
}

// ---- the checks

struct Broken {
  NodeSight sight = a_healthy_node();
  NodeContext context = in_a_job_on("perlmutter");
  Finding finding(const char* check = "gpus") {
    return *finding_of(check_gpus(sight, context), check);
  }
};

TEST(GpuChecks, AHealthyNodeIsOkAndTellsItsFigures) {
  Broken node;
  EXPECT_EQ(node.finding().health, Health::ok);
  EXPECT_NE(node.finding().why.find("4 NVIDIA devices"), std::string::npos);
  EXPECT_EQ(node.finding("gpu-health").health, Health::ok);
  EXPECT_EQ(node.finding("gpu-visibility").health, Health::ok);
}

TEST(GpuChecks, FewerThanTheTableSaysIsAnErrorInAJobAndAWarningOutside) {
  Broken node;
  node.sight.gpus->devices = node.sight.gpus->cards = node.sight.gpus->on_bus = 3;
  EXPECT_EQ(node.finding().health, Health::error);
  EXPECT_NE(node.finding().why.find("3 NVIDIA devices"), std::string::npos);
  EXPECT_NE(node.finding().why.find("says 4"), std::string::npos);
  EXPECT_NE(node.finding().remedy.find("--exclude nid001304"), std::string::npos);
  node.context.in_job = false;
  EXPECT_EQ(node.finding().health, Health::warning);
}

TEST(GpuChecks, AuroraCountsTilesAndNotCards) {
  Broken node;
  node.context = in_a_job_on("aurora");
  Gpus gpus;
  gpus.vendor = GpuVendor::intel;
  gpus.devices = 12;
  gpus.cards = gpus.on_bus = 6;
  node.sight.gpus = gpus;
  EXPECT_EQ(node.finding().health, Health::ok) << node.finding().why;
  gpus.devices = 6;
  node.sight.gpus = gpus;
  EXPECT_EQ(node.finding().health, Health::error);
}

TEST(GpuChecks, WhatSlurmGaveCountsMoreThanTheTable) {
  Broken node;
  node.sight.env["SLURM_GPUS_ON_NODE"] = "2";
  node.sight.gpus->devices = node.sight.gpus->cards = 2;
  EXPECT_EQ(node.finding().health, Health::warning) << "two of four were given: nobody is sick";
  EXPECT_EQ(node.finding().remedy, "sbatch --gpus-per-node=4");
  node.sight.gpus->devices = 1;
  EXPECT_EQ(node.finding().health, Health::error);
}

TEST(GpuChecks, AFailingToolIsToldInItsOwnWords) {
  Broken node;
  node.sight.gpus->devices = node.sight.gpus->cards = 0;
  node.sight.gpus->tool_trouble = {
      "nvidia-smi: Failed to initialize NVML: Driver/library version mismatch"};
  EXPECT_EQ(node.finding().health, Health::error);
  EXPECT_NE(node.finding().why.find("version mismatch"), std::string::npos);
}

TEST(GpuChecks, NoGpuIsFineWhereNobodyExpectsOne) {
  Broken node;
  node.sight.gpus = Gpus();
  EXPECT_EQ(node.finding().health, Health::error);
  EXPECT_EQ(node.finding("gpu-health").health, Health::unknown);
  node.context = in_a_job_on("generic");
  EXPECT_EQ(node.finding().health, Health::ok);
  EXPECT_EQ(node.finding("gpu-health").health, Health::ok);
}

TEST(GpuChecks, ADeviceThatIsOnTheBusAndDoesNotAnswerIsToldApart) {
  Broken node;
  node.context = in_a_job_on("generic");
  node.sight.gpus->on_bus = 5;
  EXPECT_EQ(node.finding().health, Health::warning);
  EXPECT_NE(node.finding().why.find("the PCI bus has 5"), std::string::npos);
}

TEST(GpuChecks, WhatCouldNotBeSeenIsUnknown) {
  Broken node;
  node.sight.gpus = Seen<Gpus>::not_seen("/sys is not mounted");
  EXPECT_EQ(node.finding().health, Health::unknown);
  EXPECT_EQ(node.finding("gpu-health").health, Health::unknown);
}

TEST(GpuChecks, MemoryThatFailsIsAnErrorAndOneThatWaitsForAResetAWarning) {
  const auto health_of = [](const std::function<void(GpuHealth*)>& breaks) {
    Broken node;
    breaks(&node.sight.gpus->health[2]);
    const Finding finding = node.finding("gpu-health");
    EXPECT_NE(finding.why.find("GPU 2: "), std::string::npos) << finding.why;
    return finding.health;
  };
  EXPECT_EQ(health_of([](GpuHealth* g) { g->uncorrected_ecc = 1; }), Health::error);
  EXPECT_EQ(health_of([](GpuHealth* g) { g->remapping_failed = true; }), Health::error);
  EXPECT_EQ(health_of([](GpuHealth* g) { g->lost = true; }), Health::error);
  EXPECT_EQ(health_of([](GpuHealth* g) { g->compute_mode = "Prohibited"; }), Health::error);
  EXPECT_EQ(health_of([](GpuHealth* g) { g->remapping_pending = true; }), Health::warning);
  EXPECT_EQ(health_of([](GpuHealth* g) { g->retirement_pending = true; }), Health::warning);
  EXPECT_EQ(health_of([](GpuHealth* g) { g->retired_pages = 60; }), Health::warning);
}

TEST(GpuChecks, DevicesThatTellNothingOfTheirMemoryAreUnknown) {
  Broken node;
  node.sight.gpus->health.clear();
  EXPECT_EQ(node.finding("gpu-health").health, Health::unknown);
}

TEST(GpuChecks, AVariableThatHidesDevicesIsTold) {
  Broken node;
  node.sight.env["CUDA_VISIBLE_DEVICES"] = "0,1";
  EXPECT_EQ(node.finding("gpu-visibility").health, Health::warning);
  EXPECT_NE(node.finding("gpu-visibility").why.find("2 of 4"), std::string::npos);
  node.sight.env["CUDA_VISIBLE_DEVICES"] = "0,-1,2,3";
  EXPECT_NE(node.finding("gpu-visibility").why.find("1 of 4"), std::string::npos)
      << "an invalid entry ends the list";
  node.sight.env["CUDA_VISIBLE_DEVICES"] = "";
  EXPECT_EQ(node.finding("gpu-visibility").health, Health::error);
  node.sight.env["CUDA_VISIBLE_DEVICES"] = "3,2,1,0";
  EXPECT_EQ(node.finding("gpu-visibility").health, Health::ok);
  EXPECT_EQ(node.finding("gpu-visibility").remedy, "");
}

}  // namespace
}  // namespace ezpz::doctor
