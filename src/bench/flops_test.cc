#include "bench/flops.h"

#include <gtest/gtest.h>

#include "bench/device.h"

namespace ezpz::bench {
namespace {

constexpr double kA100 = 312;

const ModelShape& agpt_2b() { return *find_model("agpt-2b"); }

Lora lora(int64_t rank, bool feed_forward = false) { return {rank, true, feed_forward}; }

struct Published {
  Lora lora;
  int64_t flop_per_token;
  double tokens_per_s;
  int gpus;
  double tflops;
  double tflops_digit;  // half of the last digit published
  double mfu;
  double mfu_digit;
};

TEST(Flops, EveryPublishedFigureComesOutToTheDigitsGiven) {
  const Published rows[] = {
      {{}, 9'375'842'304, 52060.06, 8, 61.013, 0.0005, 19.556, 0.0005},
      {{}, 9'375'842'304, 40363, 4, 94.6, 0.05, 30.3, 0.05},
      {{}, 9'375'842'304, 51244, 8, 60.1, 0.05, 19.2, 0.05},
      {{}, 9'375'842'304, 6175.041, 8, 7.237, 0.0005, 2.320, 0.0005},
      {lora(16), 6'454'444'032, 90878.17, 8, 73.321, 0.0005, 23.500, 0.0005},
      {lora(32, true), 6'559'825'920, 82639, 8, 67.76, 0.005, 21.72, 0.005},
      {lora(64, true), 6'680'346'624, 82632.89, 8, 69.002, 0.0005, 22.116, 0.0005},
  };
  for (const Published& row : rows) {
    const TokenCost cost = token_cost(agpt_2b(), 2048, row.lora);
    EXPECT_EQ(cost.total(), row.flop_per_token);
    const Speed speed = speed_of(cost, row.tokens_per_s, row.gpus, kA100);
    EXPECT_NEAR(speed.tflops_per_gpu, row.tflops, row.tflops_digit);
    EXPECT_NEAR(speed.mfu_percent, row.mfu, row.mfu_digit);
  }
}

TEST(Flops, WithoutLoraTheBackwardPassCostsTwiceTheForwardPass) {
  for (const ModelShape& shape : model_presets()) {
    const TokenCost cost = token_cost(shape, shape.seq);
    EXPECT_EQ(cost.backward, 2 * cost.forward) << shape.name;
  }
}

TEST(Flops, FullTrainingIsSixTimesTheMatricesAndTwelveTimesAttention) {
  for (const ModelShape& shape : model_presets()) {
    const int64_t matrices = shape.layers * block_elements(shape) + shape.vocab * shape.dim;
    EXPECT_EQ(token_cost(shape, 4096).total(), 6 * matrices + 12 * shape.layers * shape.dim * 4096)
        << shape.name;
  }
}

TEST(Flops, LoraGradientsOfABlockTravelPaddedToTheRanks) {
  const std::pair<int64_t, int64_t> rows[] = {
      {8, 419'840}, {16, 839'680}, {17, 1'055'232}, {32, 1'679'360}, {64, 3'358'720}};
  for (const auto& [rank, elements] : rows) {
    EXPECT_EQ(lora_payload(agpt_2b(), lora(rank, true), 8), elements) << rank;
  }
  const Lora attention = lora(8);
  const Lora feed_forward{8, false, true};
  EXPECT_EQ(lora_payload(agpt_2b(), attention, 8), 8 * (8192 + 5120));
  EXPECT_EQ(lora_payload(agpt_2b(), feed_forward, 8), 8 * (15104 + 24064));
}

TEST(Flops, OnlyAdaptersHaveGradientsAndMomentsUnderLora) {
  const RankBytes full = rank_bytes(agpt_2b(), {}, 1);
  EXPECT_EQ(full.weights, 4.0 * 1'986'578'432);
  EXPECT_EQ(full.gradients, full.weights);
  EXPECT_EQ(full.optimizer, 2 * full.weights);
  const Lora r16 = lora(16);
  const RankBytes adapted = rank_bytes(agpt_2b(), r16, 4);
  EXPECT_EQ(trainable_count(agpt_2b(), r16), 12 * 16 * 13312);
  EXPECT_EQ(adapted.gradients, 12 * 16 * 13312);  // 4 bytes each over 4 ranks
  EXPECT_EQ(adapted.weights, 1'986'578'432 + 12 * 16 * 13312);
}

TEST(Devices, PeaksAreThoseOfDenseBfloat16) {
  const std::pair<const char*, double> rows[] = {
      {"A100", 312},    {"H100", 989},    {"H100-PCIe", 756}, {"H100-NVL", 835},
      {"H200", 989},    {"B200", 2250},   {"L40S", 362},      {"MI250X", 191.5},
      {"MI300X", 1307}, {"MI325X", 1307}, {"MI355X", 2500},
  };
  for (const auto& [name, peak] : rows) {
    ASSERT_NE(find_device(name), nullptr) << name;
    EXPECT_EQ(peak_tflops(*find_device(name)), peak) << name;
  }
  const Device* const pvc = find_device("pvc");
  ASSERT_NE(pvc, nullptr);
  EXPECT_NEAR(peak_tflops(*pvc, 512), 512 * 512 * 1.3 / 1000, 1e-9);
  EXPECT_NEAR(peak_tflops(*pvc), 298.2, 0.05);  // 448 units: a tile of Aurora
}

TEST(Devices, AreKnownByWhatTheirDriversCallThem) {
  const std::pair<const char*, const char*> rows[] = {
      {"NVIDIA A100-SXM4-40GB", "A100"},
      {"NVIDIA H100 80GB HBM3", "H100"},
      {"NVIDIA H100 PCIe", "H100-PCIe"},
      {"NVIDIA H100 NVL", "H100-NVL"},
      {"NVIDIA H200", "H200"},
      {"AMD Instinct MI250X", "MI250X"},
      {"Intel(R) Data Center GPU Max 1550", "PVC"},
  };
  for (const auto& [said, name] : rows) {
    ASSERT_NE(find_device(said), nullptr) << said;
    EXPECT_EQ(find_device(said)->name, name) << said;
  }
  EXPECT_EQ(find_device("Tesla T4"), nullptr);
}

TEST(Models, PresetsAreThoseOfTheTables) {
  struct Row {
    const char* name;
    int64_t hidden;
  };
  // Two thirds of four times dim, rounded up to 128 (debug) or 256.
  for (const Row& row : {Row{"debug", 384},
                         {"s", 2048},
                         {"m", 2816},
                         {"l", 4096},
                         {"xl", 5632},
                         {"xxl", 11008},
                         {"xxxl", 13824},
                         {"agpt-2b", 11008},
                         {"agpt-20b", 14336}}) {
    ASSERT_NE(find_model(row.name), nullptr) << row.name;
    EXPECT_EQ(find_model(row.name)->hidden, row.hidden) << row.name;
    EXPECT_EQ(shape_trouble(*find_model(row.name)), "") << row.name;
  }
  EXPECT_EQ(find_model("AGPT_2B"), find_model("agpt-2b"));
  EXPECT_EQ(find_model("agpt"), nullptr);
}

TEST(Models, TiedTablesCountOnce) {
  ModelShape shape = agpt_2b();
  EXPECT_EQ(parameter_count(shape), 1'986'578'432);
  shape.tied = true;
  EXPECT_EQ(parameter_count(shape), 1'986'578'432 - int64_t{2048} * 256128);
}

TEST(Models, AnImpossibleShapeIsToldInASentence) {
  ModelShape shape = agpt_2b();
  shape.kv_heads = 3;
  EXPECT_EQ(shape_trouble(shape), "n-kv-heads must divide n-heads");
  shape.heads = 15;
  EXPECT_EQ(shape_trouble(shape), "n-heads must divide dim");
  shape.layers = 0;
  EXPECT_EQ(shape_trouble(shape), "n-layers must be at least 1");
}

}  // namespace
}  // namespace ezpz::bench
