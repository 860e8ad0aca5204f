#include "train/model/layout.h"

#include <gtest/gtest.h>

namespace ezpz::train {
namespace {

int64_t elements(const std::vector<UnitLayout>& units) {
  int64_t sum = 0;
  for (const UnitLayout& unit : units) sum += unit.elements;
  return sum;
}

TEST(Layout, HoldsEveryParameterOfEveryPresetOnce) {
  for (bench::ModelShape shape : bench::model_presets()) {
    for (const bool tied : {false, true}) {
      shape.tied = tied;
      EXPECT_EQ(elements(unit_layouts(shape)), bench::parameter_count(shape)) << shape.name;
    }
  }
  // The published size of the reference model, in billions.
  EXPECT_NEAR(static_cast<double>(elements(unit_layouts(*bench::find_model("agpt-2b")))) / 1e9,
              1.99, 0.005);
}

TEST(Layout, TensorParallelRanksHoldTheWholeModelBetweenThemAndTheSameNorms) {
  const bench::ModelShape shape = *bench::find_model("debug");
  const auto whole = unit_layouts(shape);
  const auto half = unit_layouts(shape, {1, 2});
  for (size_t u = 0; u < whole.size(); ++u) {
    for (const Parameter& p : whole[u].parameters) {
      const Parameter& part = half[u].find(p.name);
      EXPECT_EQ(part.elements() * (p.split == Split::whole ? 1 : 2), p.elements()) << p.name;
    }
  }
}

TEST(Layout, InitialValuesAreTheSameWhateverPartIsAskedFor) {
  const auto units = unit_layouts(*bench::find_model("debug"));
  const UnitLayout& block = units[1];
  std::vector<float> whole(static_cast<size_t>(block.elements));
  initialize(whole.data(), block, 0, block.elements, 5);
  // Behind the end there is padding, which is zero.
  const int64_t begin = block.elements - 1000;
  std::vector<float> part(1010, 9.0F);
  initialize(part.data(), block, begin, begin + 1010, 5);
  EXPECT_TRUE(std::equal(part.begin(), part.begin() + 1000, whole.begin() + begin));
  EXPECT_EQ(std::vector<float>(part.begin() + 1000, part.end()), std::vector<float>(10, 0.0F));
}

TEST(Layout, InitialValuesOfATensorParallelPartAreThoseOfTheWhole) {
  const bench::ModelShape shape = *bench::find_model("debug");
  const auto whole = unit_layouts(shape);
  const auto half = unit_layouts(shape, {1, 2});
  for (const size_t u : {size_t{0}, size_t{2}}) {
    std::vector<float> all(static_cast<size_t>(whole[u].elements));
    std::vector<float> mine(static_cast<size_t>(half[u].elements));
    initialize(all.data(), whole[u], 0, whole[u].elements, 5);
    initialize(mine.data(), half[u], 0, half[u].elements, 5);
    for (const Parameter& p : half[u].parameters) {
      const Parameter& w = whole[u].find(p.name);
      bool same = true;
      for (int64_t r = 0; r < p.rows; ++r) {
        for (int64_t c = 0; c < p.columns; ++c) {
          const int64_t at = w.offset + (p.first_row + r) * w.columns + p.first_column + c;
          same = same && all[static_cast<size_t>(at)] ==
                             mine[static_cast<size_t>(p.offset + r * p.columns + c)];
        }
      }
      EXPECT_TRUE(same) << p.name;
    }
  }
}

}  // namespace
}  // namespace ezpz::train
