// Where in a text the words for a training step are ("step", "iter"). Every line of a healthy log
// may hold one, and only the first and the last few matter, so they are not looked for with the
// other literals but from either end of a text, when somebody asks.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/prefilter.h"

namespace ezpz::evidence {

class StepSearch {
 public:
  StepSearch() : keys_(std::vector<std::string>()) {}
  explicit StepSearch(const std::vector<std::string>& keys) : keys_(keys) {}

  // Calls take(position) for each key in text, first to last, until it says true.
  template <class Take>
  void forward(std::string_view text, Take&& take) const;
  // The same, last to first.
  template <class Take>
  void backward(std::string_view text, Take&& take) const;

 private:
  // Positions in [begin, end) where a key begins, ascending.
  void find(std::string_view text, size_t begin, size_t end, std::vector<size_t>* found) const {
    found->clear();
    const size_t reach = std::min(text.size(), end + std::max<size_t>(keys_.longest(), 1) - 1);
    keys_.scan(text.substr(begin, reach - begin), [&](size_t at, int) {
      if (begin + at < end) found->push_back(begin + at);
    });
    std::sort(found->begin(), found->end());
  }

  // The first look is short, for it is often enough; later ones are longer.
  static constexpr size_t kFirstStrip = 512;
  static constexpr size_t kLongestStrip = 8192;

  Prefilter keys_;
};

template <class Take>
void StepSearch::forward(std::string_view text, Take&& take) const {
  std::vector<size_t> found;
  size_t strip = kFirstStrip;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = begin + std::min(strip, text.size() - begin);
    find(text, begin, end, &found);
    for (const size_t at : found) {
      if (take(at)) return;
    }
    begin = end;
    strip = std::min(2 * strip, kLongestStrip);
  }
}

template <class Take>
void StepSearch::backward(std::string_view text, Take&& take) const {
  std::vector<size_t> found;
  size_t strip = kFirstStrip;
  for (size_t end = text.size(); end > 0;) {
    const size_t begin = end - std::min(strip, end);
    find(text, begin, end, &found);
    for (size_t i = found.size(); i > 0; --i) {
      if (take(found[i - 1])) return;
    }
    end = begin;
    strip = std::min(2 * strip, kLongestStrip);
  }
}

}  // namespace ezpz::evidence
