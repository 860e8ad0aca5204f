#include "bench/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace ezpz::bench {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool empty() const { return low > high; }
  // 0 to 1. A range of one value is a line in the middle.
  [[nodiscard]] double place(double value) const {
    return high > low ? (value - low) / (high - low) : 0.5;
  }
};

struct Bounds {
  Range x;
  Range y;
};

bool is_drawn(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

Bounds bounds_of(const Panel& panel) {
  Bounds bounds;
  for (const Series& series : panel.series) {
    for (const auto& point : series.points) {
      if (!is_drawn(point)) continue;
      bounds.x.take(point.first);
      bounds.y.take(point.second);
    }
  }
  return bounds;
}

int column_of(double place, int columns) {
  return std::clamp(static_cast<int>(std::lround(place * (columns - 1))), 0, columns - 1);
}

// What falls on each of so many columns.
struct Column {
  Range y;
  double first = 0;  // in the points' order: where the line from the column before ends,
  double last = 0;   // and where that to the next begins
};
std::vector<Column> columns_of(const Series& series, const Bounds& bounds, int columns) {
  std::vector<Column> result(static_cast<size_t>(columns));
  for (const auto& point : series.points) {
    if (!is_drawn(point)) continue;
    Column& column = result[static_cast<size_t>(column_of(bounds.x.place(point.first), columns))];
    if (column.y.empty()) column.first = point.second;
    column.y.take(point.second);
    column.last = point.second;
  }
  return result;
}

// Dots, the first row on top.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), height_(height), dots_(static_cast<size_t>(width) * height, 0) {}

  void draw(const Series& series, const Bounds& bounds, int mark) {
    const std::vector<Column> columns = columns_of(series, bounds, width_);
    int before = -1;
    for (int x = 0; x < width_; ++x) {
      const Column& column = columns[static_cast<size_t>(x)];
      if (column.y.empty()) continue;
      if (before >= 0) {
        join(before, row_of(bounds.y.place(columns[static_cast<size_t>(before)].last)), x,
             row_of(bounds.y.place(column.first)), mark);
      }
      before = x;
      rise(x, row_of(bounds.y.place(column.y.high)), row_of(bounds.y.place(column.y.low)), mark);
    }
  }
  [[nodiscard]] int at(int x, int y) const {
    return dots_[static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)];
  }

 private:
  [[nodiscard]] int row_of(double place) const { return height_ - 1 - column_of(place, height_); }
  void rise(int x, int top, int bottom, int mark) {
    for (int y = top; y <= bottom; ++y) set(x, y, mark);
  }
  // A straight line without holes, from one column to a later one.
  void join(int x0, int y0, int x1, int y1, int mark) {
    int y = y0;
    for (int x = x0 + 1; x <= x1; ++x) {
      const int next =
          y0 + static_cast<int>(std::lround(static_cast<double>(y1 - y0) * (x - x0) / (x1 - x0)));
      rise(x, std::min(y, next), std::max(y, next), mark);
      y = next;
    }
  }
  void set(int x, int y, int mark) {
    dots_[static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)] = mark;
  }

  int width_;
  int height_;
  std::vector<int> dots_;
};

constexpr int kDotsAcross = 2;
constexpr int kDotsDown = 4;

// U+2800 and a bit for each dot.
std::string braille(const Canvas& canvas, int column, int row) {
  constexpr std::array<std::array<unsigned, kDotsAcross>, kDotsDown> kBits{
      {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
  unsigned bits = 0;
  for (int y = 0; y < kDotsDown; ++y) {
    for (int x = 0; x < kDotsAcross; ++x) {
      if (canvas.at(column * kDotsAcross + x, row * kDotsDown + y) != 0) bits |= kBits[y][x];
    }
  }
  if (bits == 0) return " ";
  std::string utf8(3, '\0');
  utf8[0] = static_cast<char>(0xE2);
  utf8[1] = static_cast<char>(0xA0 | (bits >> 6U));
  utf8[2] = static_cast<char>(0x80 | (bits & 0x3FU));
  return utf8;
}

constexpr std::string_view kMarks = "*o+x#@";

std::string short_value(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size >= 1e6 || size < 1e-3)) return fmt::format("{:.3g}", value);
  if (value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 1 : 4);
}

std::string legend(const Panel& panel, Characters characters) {
  if (panel.series.size() < 2) return "";
  std::string text;
  for (size_t i = 0; i < panel.series.size(); ++i) {
    text += text.empty() ? "  " : ", ";
    if (characters == Characters::ascii) text += fmt::format("{} ", kMarks[i % kMarks.size()]);
    text += printable(panel.series[i].name, 60);
  }
  return text + "\n";
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : printable(text, 200)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

// ---- SVG

constexpr int kWidth = 760;
constexpr int kHeight = 220;
constexpr int kLeft = 80;
constexpr int kRight = 20;
constexpr int kTop = 40;
constexpr int kBottom = 30;

std::string svg_series(const Series& series, const Bounds& bounds, int top, size_t index) {
  std::string points;
  const auto add = [&](double x, double y) {
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x,
                          top + (1 - bounds.y.place(y)) * kHeight);
  };
  const std::vector<Column> columns = columns_of(series, bounds, kWidth);
  size_t drawn = 0;
  for (int column = 0; column < kWidth; ++column) {
    const Column& c = columns[static_cast<size_t>(column)];
    if (c.y.empty()) continue;
    ++drawn;
    const double x = bounds.x.high > bounds.x.low ? kLeft + column : kLeft + kWidth / 2.0;
    add(x, c.y.low);
    if (c.y.high > c.y.low) add(x, c.y.high);
    if (c.last != c.y.high && c.y.high > c.y.low) add(x, c.last);
  }
  if (drawn == 0) return "";
  const std::string cls = fmt::format("s{}", index % 4);
  if (drawn == 1) {
    const std::string at = points.substr(0, points.find(' '));
    const size_t comma = at.find(',');
    return fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3\"/>\n", cls,
                       at.substr(0, comma), at.substr(comma + 1));
  }
  return fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", cls, points);
}

std::string svg_text(int x, int y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string svg_panel(const Panel& panel, int top) {
  std::string svg = svg_text(kLeft, top - 8, "start", panel.title);
  const Bounds bounds = bounds_of(panel);
  svg += fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                     kLeft, top, kWidth, kHeight);
  if (bounds.x.empty()) {
    return svg + svg_text(kLeft + kWidth / 2, top + kHeight / 2, "middle", "nothing was recorded");
  }
  svg += svg_text(kLeft - 6, top + 10, "end", short_value(bounds.y.high));
  if (bounds.y.high > bounds.y.low) {
    svg += svg_text(kLeft - 6, top + kHeight, "end", short_value(bounds.y.low));
  }
  svg += svg_text(kLeft, top + kHeight + 18, "start", "step " + short_value(bounds.x.low));
  if (bounds.x.high > bounds.x.low) {
    svg += svg_text(kLeft + kWidth, top + kHeight + 18, "end", short_value(bounds.x.high));
  }
  for (size_t i = 0; i < panel.series.size(); ++i) {
    svg += svg_series(panel.series[i], bounds, top, i);
    if (panel.series.size() < 2) continue;
    const int x = kLeft + kWidth - 8;
    const int y = top + 18 + static_cast<int>(i) * 18;
    svg += fmt::format("<text class=\"s{}\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                       i % 4, x, y, escaped(panel.series[i].name));
  }
  return svg;
}

}  // namespace

std::string terminal_plot(const Panel& panel, int width, int height, Characters characters) {
  std::string text = printable(panel.title, 100) + "\n" + legend(panel, characters);
  const Bounds bounds = bounds_of(panel);
  if (bounds.x.empty()) return text + "  nothing was recorded\n";
  const bool dotted = characters == Characters::braille;
  Canvas canvas(width * (dotted ? kDotsAcross : 1), height * (dotted ? kDotsDown : 1));
  for (size_t i = 0; i < panel.series.size(); ++i) {
    canvas.draw(panel.series[i], bounds, static_cast<int>(i % kMarks.size()) + 1);
  }
  const std::string high = short_value(bounds.y.high);
  const std::string low = bounds.y.high > bounds.y.low ? short_value(bounds.y.low) : "";
  const size_t margin = std::max(high.size(), low.size());
  for (int row = 0; row < height; ++row) {
    const std::string& label = row == 0 ? high : row == height - 1 ? low : std::string();
    std::string line = std::string(margin - label.size(), ' ') + label + " |";
    for (int column = 0; column < width; ++column) {
      if (dotted) {
        line += braille(canvas, column, row);
      } else {
        const int mark = canvas.at(column, row);
        line += mark == 0 ? ' ' : kMarks[static_cast<size_t>(mark) - 1];
      }
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  const std::string first = "step " + short_value(bounds.x.low);
  const std::string last = bounds.x.high > bounds.x.low ? short_value(bounds.x.high) : "";
  const auto across = static_cast<size_t>(width);
  const size_t between =
      across > first.size() + last.size() ? across - first.size() - last.size() : 1;
  text += std::string(margin + 1, ' ') + "+" + std::string(across, '-') + "\n";
  return text + std::string(margin + 2, ' ') + first +
         (last.empty() ? "" : std::string(between, ' ') + last) + "\n";
}

std::string svg_plot(const std::string& title, const std::vector<Panel>& panels) {
  constexpr int kHead = 40;
  constexpr int kPanel = kTop + kHeight + kBottom;
  const int width = kLeft + kWidth + kRight;
  const int height = kHead + static_cast<int>(panels.size()) * kPanel;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n"
      "<style>\n"
      "svg {{ background: #fff; color: #222; }}\n"
      "text {{ font: 12px sans-serif; fill: #222; }}\n"
      ".frame {{ fill: none; stroke: #999; }}\n"
      "polyline {{ fill: none; stroke-width: 1.5; }}\n"
      "polyline.s0 {{ stroke: #0072b2; }} circle.s0, text.s0 {{ fill: #0072b2; }}\n"
      "polyline.s1 {{ stroke: #d55e00; }} circle.s1, text.s1 {{ fill: #d55e00; }}\n"
      "polyline.s2 {{ stroke: #009e73; }} circle.s2, text.s2 {{ fill: #009e73; }}\n"
      "polyline.s3 {{ stroke: #cc79a7; }} circle.s3, text.s3 {{ fill: #cc79a7; }}\n"
      "</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      width, height);
  svg += svg_text(kLeft, 24, "start", title);
  for (size_t i = 0; i < panels.size(); ++i) {
    svg += svg_panel(panels[i], kHead + static_cast<int>(i) * kPanel + kTop - 10);
  }
  return svg + "</svg>\n";
}

}  // namespace ezpz::bench
