#include "bench/cells.h"

#include <gtest/gtest.h>

#include "base/embedded.h"
#include "base/text.h"

namespace ezpz::bench {
namespace {

constexpr const char* kLabel = "agpt-2b/bs1/seq2048/tp1";

std::string differs(const std::string& label, const std::string& command,
                    std::optional<int> nodes = std::nullopt) {
  return join(departures(find_cell(label), split_words(command), nodes), "; ");
}

TEST(Cells, EveryBuiltInFileIsUnderstood) {
  for (const embedded::File& file : embedded::benchmarks()) {
    const Result<Benchmark> benchmark = parse_benchmark(file.text, std::string(file.name));
    EXPECT_TRUE(benchmark.ok()) << (benchmark ? "" : benchmark.error().one_line());
    EXPECT_FALSE(benchmark->cells.empty()) << file.name;
  }
  EXPECT_EQ(benchmarks().size(), embedded::benchmarks().size());
}

TEST(Cells, TheBenchmarksOwnCommandDoesNotDepart) {
  EXPECT_EQ(differs(kLabel,
                    "python3 -m ezpz.examples.fsdp_tp --model agpt-2b --tp 1 --dataset random "
                    "--train-iters 20 --batch-size 1 --seq-len 2048 --outdir /anywhere",
                    2),
            "");
  EXPECT_EQ(differs(kLabel,
                    "ezpz train --model=agpt_2b --tp=1 --dataset=random --train-iters=20 "
                    "--batch-size=1 --seq-len=2048 --json"),
            "");
}

TEST(Cells, EachDifferenceIsNamed) {
  const std::string own =
      "train --model agpt-2b --tp 1 --dataset random --train-iters 20 --seq-len 2048 ";
  EXPECT_EQ(differs(kLabel, own + "--batch-size 4"), "batch 4 instead of 1");
  EXPECT_EQ(differs(kLabel, own), "no batch, which should be 1");
  EXPECT_EQ(differs(kLabel, own + "--batch-size 1 --compile"), "also compile yes");
  EXPECT_EQ(differs(kLabel, own + "--batch-size 1 --fused-loss on"), "also --fused-loss on");
  EXPECT_EQ(differs(kLabel, own + "--batch-size 1", 3), "3 nodes instead of 1 or 2 or 4");
}

TEST(Cells, OfAFlagGivenTwiceTheLastCounts) {
  EXPECT_EQ(differs("agpt-2b/bs2", "train --model agpt-2b --batch-size 1 --batch-size 2"), "");
}

TEST(Cells, ALabelOfNoTableIsHeldAgainstItsOwnWords) {
  EXPECT_FALSE(find_cell("agpt-2b/bs4/seq8192/tp2").in_table);
  EXPECT_EQ(differs("agpt-2b/bs4/seq8192/tp2",
                    "train --model agpt-2b --batch-size 4 --seq-len 8192 --tp 2 --x"),
            "");
  EXPECT_EQ(differs("agpt-2b/bs4/seq8192/tp2", "train --model agpt-20b --batch-size 1"),
            "batch 1 instead of 4; model agpt-20b instead of agpt-2b");
  EXPECT_EQ(differs("what I tried on Monday", "train --batch-size 3"), "");
}

TEST(Cells, TheFineTuningBenchmarkKnowsItsTwoDepartures) {
  const std::string own =
      "torchrun x --model_name_or_path meta-llama/Llama-3.2-1B --block_size 8192 --streaming ";
  EXPECT_EQ(differs("llm-finetuning", own), "");
  EXPECT_EQ(differs("llm-finetuning", own + "--fsdp_config {\"fsdp_version\":1}"),
            "also --fsdp_config {\"fsdp_version\":1}");
  EXPECT_EQ(differs("llm-finetuning", "torchrun x --block_size 8192"),
            "no streaming, which should be yes");
}

TEST(Cells, ARunWithoutACommandCannotDepart) {
  EXPECT_TRUE(departures(find_cell(kLabel), {}, std::nullopt).empty());
}

TEST(Cells, AMistakenFileSaysWhere) {
  for (const char* text : {"cell = 3", "[cell.a]\nmodle = 1", "[cell.a]\nnodes = 2", "x = [}",
                           "[cell.a]\nnodes = [0]", "cell.a = 1"}) {
    const Result<Benchmark> benchmark = parse_benchmark(text, "mine");
    ASSERT_FALSE(benchmark.ok()) << text;
    EXPECT_NE(benchmark.error().one_line().find("benchmarks/mine.toml"), std::string::npos);
  }
}

}  // namespace
}  // namespace ezpz::bench
