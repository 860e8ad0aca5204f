#include "bench/cell_record.h"

#include <gtest/gtest.h>

namespace ezpz::bench {
namespace {

using Texts = std::vector<std::string>;

TEST(CellRecord, IsReadAsItWasWritten) {
  CellRecord record;
  record.label = "a/nodes1";
  record.state = "timed_out";
  record.why = "not done after 2.0 s";
  record.resolved = {{"batch", "1"}, {"env A", "x y"}};
  record.argv = {"ezpz", "launch"};
  record.exit_code = 143;
  record.attempts = 3;
  record.run_dir = "attempt-3";
  record.host = "nid1";
  record.pid = 77;
  record.start_ticks = 12345678901;
  record.exported = {"/x/runs.csv"};
  const std::string text = to_json_text(record);
  const Result<CellRecord> read = cell_record_from_json(text, "cell.json");
  ASSERT_TRUE(read.ok()) << read.error().one_line();
  EXPECT_EQ(to_json_text(*read), text);
  EXPECT_EQ(read->resolved, record.resolved);
  EXPECT_EQ(read->start_ticks, record.start_ticks);
}

TEST(CellRecord, WhatIsNoneIsRefused) {
  const std::string whole = to_json_text(CellRecord{});
  EXPECT_TRUE(cell_record_from_json(whole, "x").ok());
  EXPECT_FALSE(cell_record_from_json(whole.substr(0, whole.size() / 2), "x").ok());
  EXPECT_FALSE(cell_record_from_json("[]", "x").ok());
  EXPECT_FALSE(cell_record_from_json("{}", "x").ok());
  CellRecord elsewhere;
  elsewhere.run_dir = "../../etc";
  EXPECT_FALSE(cell_record_from_json(to_json_text(elsewhere), "x").ok());
  CellRecord strange;
  strange.state = "fine";
  EXPECT_FALSE(cell_record_from_json(to_json_text(strange), "x").ok());
}

TEST(CellRecord, ChangesAreToldOneByOne) {
  EXPECT_EQ(changes({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"a", "1"}, {"b", "4"}, {"d", "5"}}),
            (Texts{"b 4 instead of 2", "also d 5", "no c, which was 3"}));
  EXPECT_EQ(changes({{"a", "1"}}, {{"a", "1"}}), Texts{});
  const std::string same(200, 'x');
  EXPECT_EQ(
      changes({{"a", same + "1"}}, {{"a", same + "2"}}),
      (Texts{"a ..." + std::string(20, 'x') + "2 instead of ..." + std::string(20, 'x') + "1"}));
}

}  // namespace
}  // namespace ezpz::bench
