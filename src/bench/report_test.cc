#include "bench/report.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace ezpz::bench {
namespace {

std::vector<BenchRow> rows() {
  BenchRow done;
  done.label = "lora-r32-attn,mlp";
  done.state = "done";
  done.exit_code = 0;
  done.attempts = 1;
  done.nodes = 2;
  done.gpus = 8;
  done.steps = 20;
  done.speeds.tokens_per_s = 6175.041;
  done.speeds.mfu_percent = 101.5;
  done.baseline = "full";
  done.efficiency_percent = 93.25;
  done.flags = {{"mfu", "an MFU of 101.5 % is above the peak"}};
  BenchRow failed;
  failed.label = "full";
  failed.state = "failed";
  failed.why = "exit code 3\x1b[31m";
  failed.exit_code = 3;
  failed.attempts = 2;
  return {done, failed};
}

TEST(Report, ALineACellAndAReasonForWhatIsNotAsItShouldBe) {
  const std::vector<std::string> lines = split_lines(report_text(rows()));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1],
            "lora-r32-attn,mlp  done    2      8     -      20     6175   -          101.5  -     "
            "93.2    mfu");
  EXPECT_EQ(lines[3], "implausible: lora-r32-attn,mlp: an MFU of 101.5 % is above the peak");
  EXPECT_EQ(lines[4], "failed: full: exit code 3?[31m");
}

TEST(Report, TheCsvHasAllNumbersAndNoneThatWereNotMeasured) {
  const std::vector<std::string> lines = split_lines(report_csv(rows()));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1],
            "\"lora-r32-attn,mlp\",,done,0,1,2,8,,20,,6175.041,,101.5,,,full,93.25,mfu,an MFU of "
            "101.5 % is above the peak");
  EXPECT_EQ(lines[2], "full,,failed,3,2,,,,,,,,,,,,,,exit code 3?[31m");
}

TEST(Report, JsonTellsWhatIsNotKnownAsNull) {
  const std::string text = report_json(rows());
  EXPECT_NE(text.find("\"ranks\": null"), std::string::npos);
  EXPECT_NE(text.find("\"rule\": \"mfu\""), std::string::npos);
}

}  // namespace
}  // namespace ezpz::bench
