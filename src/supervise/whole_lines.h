// Output of many speakers to one reader, by whole lines (a progress bar's end at its '\r'): what is
// unfinished waits for its end, but not for ever. Where somebody else speaks behind what has none,
// a line is ended for him. Never blocks: what the reader does not take waits here, and full() says
// when to slow down.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/loop.h"

namespace ezpz::supervise {

class WholeLines {
 public:
  static constexpr double kPatience_s = 2;  // since the last byte of an unfinished line
  static constexpr size_t kLongest_bytes = 1U << 16U;
  static constexpr size_t kMuch_bytes = 4U << 20U;
  static constexpr size_t kLittle_bytes = 1U << 20U;

  // on_room: it was full, and is not any more.
  explicit WholeLines(Loop& loop, std::function<void()> on_room = {})
      : loop_(loop), on_room_(std::move(on_room)) {}
  ~WholeLines();
  WholeLines(const WholeLines&) = delete;
  WholeLines& operator=(const WholeLines&) = delete;

  using Speaker = std::pair<int, int>;  // whoever they are: a rank and one of its streams
  void add(Speaker, int fd, std::string_view bytes);
  // What is left of these speakers' unfinished lines, as it is.
  void finish(Speaker);
  void finish_all();
  // A line of our own.
  void say(int fd, std::string_view line);

  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] bool empty() const { return waiting_bytes_ == 0; }
  [[nodiscard]] bool broken() const { return broken_; }  // nobody reads any more

 private:
  void put(Speaker, int fd, std::string_view bytes);
  void flush();
  void be_patient();

  struct Unfinished {
    int fd = 1;
    std::string text;
    double touched_s = 0;
  };
  Loop& loop_;
  std::function<void()> on_room_;
  bool full_ = false;
  std::map<Speaker, Unfinished> unfinished_;
  Speaker last_speaker_;
  bool line_is_open_ = false;
  std::deque<std::pair<int, std::string>> waiting_;
  size_t waiting_bytes_ = 0;
  size_t written_ = 0;  // of the first that waits
  int watched_ = -1;
  Loop::TimerId patience_ = 0;
  bool broken_ = false;
};

}  // namespace ezpz::supervise
