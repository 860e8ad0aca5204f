// Series as pictures: of characters for a terminal, and as SVG. Pure. Readable as C++17.
//
// What does not fit is drawn as its range: of the values that fall on one column the lowest and the
// highest are joined, so that a spike among a million steps is seen.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ezpz::bench {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; a y that is no number is a gap
};

struct Panel {
  std::string title;  // with its unit: "tokens/s"
  std::vector<Series> series;
};

enum class Characters {
  braille,  // UTF-8: 2 x 4 dots a character
  ascii,
};

// width and height are of the drawing, in characters, without its axes. Of several series each has
// a mark of its own in ASCII; braille tells them apart by the legend's order only when they do not
// cross. A panel without a single point says so.
std::string terminal_plot(const Panel&, int width, int height, Characters);

// One picture, the panels below each other. Text is escaped; nothing in it is executed or fetched.
std::string svg_plot(const std::string& title, const std::vector<Panel>&);

}  // namespace ezpz::bench
