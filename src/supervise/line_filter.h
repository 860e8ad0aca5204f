// Keeps from the terminal the lines of NCCL's and RCCL's that are printed only because ezpz set
// NCCL_DEBUG. Exact by the line, whatever the chunks; everything else passes byte for byte and at
// once, but for the beginning of a line that may still become one of those: that is held, at most
// kMaxHeld bytes of it, until the caller's patience ends (release()).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ezpz::supervise {

class LineFilter {
 public:
  static constexpr size_t kMaxHeld = 256;
  using Show = std::function<void(std::string_view)>;

  explicit LineFilter(Show show) : show_(std::move(show)) {}

  void feed(std::string_view bytes);
  // Shows what is held, unless it is known by now to be one of those lines.
  void release();
  [[nodiscard]] bool holds() const { return !held_.empty(); }
  // Another number for each line whose beginning is held.
  [[nodiscard]] uint64_t held_line() const { return held_line_; }

 private:
  enum class Line {
    open,    // so far it may be either; what there is of it is held
    shown,   // some of it was shown, so the rest will be
    hidden,  // it is one of NCCL's
  };
  void finish_line(std::string_view* bytes);
  void whole_lines(std::string_view lines);
  void begin_line(std::string_view start);

  Show show_;
  std::string held_;
  uint64_t held_line_ = 0;
  Line line_ = Line::open;
};

// What a line, or the beginning of one, is.
enum class NcclLine { yes, no, maybe };
NcclLine is_nccl_line(std::string_view start, bool whole);

}  // namespace ezpz::supervise
