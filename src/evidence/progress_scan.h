// Recognises the step in a progress line without a regular expression: a log can be nothing but
// such lines. What counts is data (patterns/progress.toml): keys ("step", "iter"), what must not
// stand around them, and which progress bars mean training.
//
//   step=5   step: 5   "step": 5   iteration 5/100   Step [5/100]   global_step 1,200   5/100
//   [..it/s]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/grammar_file.h"

namespace ezpz::evidence {

struct Step {
  int64_t value = 0;
  size_t preference = 0;             // of two in one line the lower one counts
  std::optional<int64_t> bar_total;  // set for a progress bar: its end
};

// A few words, asked for often: by first byte.
class WordSet {
 public:
  void add(std::string lower_word);
  [[nodiscard]] bool contains(std::string_view word) const;  // in any case

 private:
  std::array<std::vector<std::string>, 32> by_first_;
};

class ProgressScan {
 public:
  ProgressScan() = default;
  explicit ProgressScan(const FileProgress& rules);

  // What the prefilter has to look for: a step may be at each place where one of these occurs.
  [[nodiscard]] const std::vector<std::string>& key_literals() const { return key_literals_; }
  static std::vector<std::string> bar_literals() { return {"it/s", "s/it"}; }

  // text lies in one segment or reaches back into earlier ones (it is read backwards no further
  // than to a separator) and ends where the segment ends; hit is where the literal was found.
  [[nodiscard]] std::optional<Step> at_key(std::string_view text, size_t hit) const;
  [[nodiscard]] std::optional<Step> at_bar(std::string_view text, size_t hit) const;

 private:
  [[nodiscard]] std::optional<size_t> key_at(std::string_view word) const;
  [[nodiscard]] bool allowed_before(std::string_view text, size_t word) const;
  [[nodiscard]] std::optional<int64_t> named_bar(std::string_view name, int64_t done,
                                                 int64_t total) const;

  std::vector<std::string> keys_;  // best first
  std::vector<std::string> key_literals_;
  WordSet not_after_;
  WordSet not_followed_;
  WordSet path_prefixes_;
  WordSet bar_names_;
};

}  // namespace ezpz::evidence
