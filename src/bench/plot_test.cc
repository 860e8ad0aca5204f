#include "bench/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace ezpz::bench {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Panel panel(std::vector<std::pair<double, double>> points) {
  return {"tokens/s", {{"a", std::move(points)}}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TerminalPlot, ARisingLineRisesFromTheLeftBelowToTheRightAbove) {
  EXPECT_EQ(terminal_plot(panel({{1, 0}, {2, 1}, {3, 2}}), 3, 3, Characters::ascii),
            "tokens/s\n"
            "2 |  *\n"
            "  | **\n"
            "0 |**\n"
            "  +---\n"
            "   step 1 3\n");
}

TEST(TerminalPlot, BrailleHasEightDotsInACharacter) {
  const std::string text = terminal_plot(panel({{1, 0}, {2, 1}}), 1, 1, Characters::braille);
  EXPECT_EQ(lines_of(text)[1], "1 |\xE2\xA3\xB8");  // dots of the right column, and the lowest left
}

TEST(TerminalPlot, ASpikeAmongAMillionStepsIsSeen) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 1'000'000; ++i) points.emplace_back(i, i == 654'321 ? 9 : 1);
  const std::vector<std::string> lines =
      lines_of(terminal_plot(panel(points), 60, 8, Characters::ascii));
  EXPECT_EQ(std::count(lines[1].begin(), lines[1].end(), '*'), 1) << lines[1];
}

TEST(TerminalPlot, WhatIsNoNumberIsAGap) {
  const std::string text = terminal_plot(
      panel({{1, 1}, {2, kNan}, {3, std::numeric_limits<double>::infinity()}, {4, 2}}), 4, 2,
      Characters::ascii);
  EXPECT_EQ(lines_of(text)[1].substr(0, 3), "2 |");
  EXPECT_EQ(lines_of(text)[2].substr(0, 3), "1 |");
}

TEST(TerminalPlot, OnePointAndAConstantLineHaveOneLabel) {
  for (const auto& points : {std::vector<std::pair<double, double>>{{5, 7}},
                             std::vector<std::pair<double, double>>{{5, 7}, {6, 7}}}) {
    const std::string text = terminal_plot(panel(points), 10, 3, Characters::ascii);
    EXPECT_EQ(lines_of(text)[1].substr(0, 3), "7 |") << text;
    EXPECT_NE(text.find('*'), std::string::npos) << text;
  }
}

TEST(TerminalPlot, NothingIsSaidToBeNothing) {
  EXPECT_EQ(terminal_plot(panel({}), 10, 3, Characters::braille),
            "tokens/s\n  nothing was recorded\n");
  EXPECT_EQ(terminal_plot(panel({{1, kNan}}), 10, 3, Characters::ascii),
            "tokens/s\n  nothing was recorded\n");
}

TEST(TerminalPlot, TwoSeriesHaveMarksAndALegend) {
  Panel both = panel({{1, 1}, {2, 1}});
  both.series.push_back({"b", {{1, 2}, {2, 2}}});
  const std::string text = terminal_plot(both, 4, 2, Characters::ascii);
  EXPECT_NE(text.find("  * a, o b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2 |o"), std::string::npos) << text;
  EXPECT_NE(text.find("1 |*"), std::string::npos) << text;
}

TEST(SvgPlot, HoldsAPanelForEachAndNothingThatIsExecuted) {
  Panel both = panel({{1, 1}, {2, 3}});
  both.series.push_back({"<script>alert('x')</script>", {{1, 2}, {2, 2}}});
  const std::string svg = svg_plot("run \"a\" & b", {both, panel({})});
  EXPECT_EQ(svg.substr(0, 4), "<svg");
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(svg.find("run &quot;a&quot; &amp; b"), std::string::npos);
  EXPECT_NE(svg.find("nothing was recorded"), std::string::npos);
  EXPECT_NE(svg.find("<polyline class=\"s1\""), std::string::npos);
}

TEST(SvgPlot, AMillionStepsAreAPictureOfBoundedSize) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 1'000'000; ++i) points.emplace_back(i, std::sin(i));
  EXPECT_LT(svg_plot("x", {panel(points)}).size(), 64U << 10U);
}

TEST(SvgPlot, OnePointIsADot) {
  EXPECT_NE(svg_plot("x", {panel({{5, 7}})}).find("<circle"), std::string::npos);
}

}  // namespace
}  // namespace ezpz::bench
