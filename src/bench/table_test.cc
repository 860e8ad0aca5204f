#include "bench/table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/cells.h"
#include "bench/plan.h"

namespace ezpz::bench {
namespace {

CellTable table_of(const std::string& text) {
  Result<CellTable> table = parse_cell_table(text, "dir/mine.toml");
  EXPECT_TRUE(table.ok()) << table.error().one_line();
  return table ? *table : CellTable{};
}

std::string refusal(const std::string& text) {
  const Result<CellTable> table = parse_cell_table(text, "mine.toml");
  return table ? "(accepted)" : table.error().one_line();
}

TEST(Table, ACellHasTheDefaultsUnlessItSaysOtherwise) {
  const CellTable table = table_of(R"(
[defaults]
model = "debug"
batch = 2
env = { A = "1", B = "2" }
[[cell]]
label = "plain"
[[cell]]
label = "other"
batch = 4
env = { B = "3" }
)");
  ASSERT_EQ(table.cells.size(), 2U);
  EXPECT_EQ(table.name, "mine");
  EXPECT_EQ(table.cells[0].settings.at("batch"), "2");
  EXPECT_EQ(table.cells[1].settings.at("batch"), "4");
  EXPECT_EQ(table.cells[1].settings.at("model"), "debug");
  EXPECT_EQ(table.cells[1].env.at("A"), "1");
  EXPECT_EQ(table.cells[1].env.at("B"), "3");
}

TEST(Table, SeveralNumbersOfNodesAreSeveralCells) {
  const CellTable table = table_of(R"(
baseline = "a/nodes1"
[defaults]
model = "debug"
nodes = [1, 2]
[[cell]]
label = "a"
[[cell]]
label = "b"
nodes = 4
)");
  ASSERT_EQ(table.cells.size(), 3U);
  EXPECT_EQ(table.cells[0].label, "a/nodes1");
  EXPECT_EQ(table.cells[1].label, "a/nodes2");
  EXPECT_EQ(table.cells[1].nodes, 2);
  EXPECT_EQ(table.cells[2].label, "b");
  EXPECT_EQ(table.cells[2].nodes, 4);
  EXPECT_EQ(table.cells[2].baseline, "a/nodes1");
}

TEST(Table, AMistakeIsToldWithItsLine) {
  EXPECT_EQ(refusal("[[cell]]\nlabel = \"a\"\nmodel = \"m\"\nbatchs = 1\n"),
            "not understood: batchs: mine.toml:4 (did you mean batch?)");
  EXPECT_NE(refusal("[[cell]]\nlabel = \"a\"\nmodel = \"m\"\nnodes = 0\n").find("mine.toml:4"),
            std::string::npos);
  EXPECT_NE(refusal("[[cell]\n").find("mine.toml:1"), std::string::npos);
  EXPECT_NE(refusal("x = 1\n").find("not understood: x: mine.toml:1"), std::string::npos);
}

TEST(Table, WhatCannotBeRunIsRefused) {
  EXPECT_NE(refusal("").find("no [[cell]]"), std::string::npos);
  EXPECT_NE(refusal("[[cell]]\nmodel = \"m\"\n").find("without a label"), std::string::npos);
  EXPECT_NE(refusal("[[cell]]\nlabel = \"a\"\n").find("neither a model nor a command"),
            std::string::npos);
  EXPECT_NE(refusal("[[cell]]\nlabel = \"=1+1\"\nmodel = \"m\"\n").find("formula"),
            std::string::npos);
  EXPECT_NE(refusal("[[cell]]\nlabel = \"a\"\ncommand = [\"x\"]\nargs = [\"y\"]\n")
                .find("without a command"),
            std::string::npos);
  EXPECT_NE(refusal("[[cell]]\nlabel = \"a\"\ncommand = \"x y\"\n").find("not a list"),
            std::string::npos);
  EXPECT_NE(refusal("[[cell]]\nlabel = \"a\"\nmodel = \"m\"\nenv = { \"A=B\" = \"1\" }\n")
                .find("not a variable"),
            std::string::npos);
  EXPECT_NE(
      refusal("[[cell]]\nlabel = \"a\"\nmodel = \"m\"\ntimeout = \"soon\"\n").find("not a time"),
      std::string::npos);
}

TEST(Table, TwoCellsNeverShareALabelOrADirectory) {
  const std::string a = "[[cell]]\nlabel = \"a/b\"\nmodel = \"m\"\n";
  EXPECT_NE(refusal(a + a).find("two cells have the label a/b"), std::string::npos);
  EXPECT_NE(refusal(a + "[[cell]]\nlabel = \"a_b\"\nmodel = \"m\"\n").find("the same directory"),
            std::string::npos);
}

TEST(Table, ADirectoryStaysBelowTheTables) {
  const CellTable table = table_of("[[cell]]\nlabel = \"../../x y\"\nmodel = \"m\"\n");
  EXPECT_EQ(table.cells[0].folder, "_._.._x_y");
}

TEST(Table, ABaselineIsACell) {
  EXPECT_EQ(refusal("baseline = \"ful\"\n[[cell]]\nlabel = \"full\"\nmodel = \"m\"\n"),
            "no cell is called as the baseline says: ful: mine.toml:1 (did you mean full?)");
}

TEST(Table, ASeriesIsWhatIsAlikeButForItsNodes) {
  const CellTable table = table_of(R"(
[defaults]
model = "m"
[[cell]]
label = "a"
nodes = [1, 2]
[[cell]]
label = "b"
batch = 2
)");
  EXPECT_EQ(series_of(table.cells[0]), series_of(table.cells[1]));
  EXPECT_NE(series_of(table.cells[0]), series_of(table.cells[2]));
  EXPECT_NE(resolved(table.cells[0]), resolved(table.cells[1]));
}

TEST(Table, EveryBuiltInTableIsReadAndItsExportsAreTheBenchmarksOwnCommands) {
  EXPECT_EQ(builtin_table_names(),
            (std::vector<std::string>{"amsc-series", "lora-sweep", "scaling"}));
  for (const std::string& name : builtin_table_names()) {
    const Result<CellTable> table = parse_cell_table(builtin_table(name), name + ".toml");
    ASSERT_TRUE(table.ok()) << table.error().one_line();
    for (const TableCell& cell : table->cells) {
      if (cell.config.empty()) continue;
      const FoundCell found = find_cell(cell.config);
      EXPECT_TRUE(found.in_table) << cell.config;
      std::vector<std::string> argv =
          plan_cell(cell, {"ezpz", "ezpz-train", "d", 30, nullptr}).argv;
      argv.erase(argv.begin(), std::find(argv.begin(), argv.end(), "--") + 1);
      const std::optional<int> nodes =
          cell.nodes > 0 ? std::optional<int>(cell.nodes) : std::nullopt;
      EXPECT_EQ(departures(found, argv, nodes), std::vector<std::string>{}) << cell.label;
    }
  }
}

}  // namespace
}  // namespace ezpz::bench
