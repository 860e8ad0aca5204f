// What happened to this rank, for tests to read: one JSON object a line in
// <dir>/attempt-<A>.rank-<R>, appended, never rewritten. A second rank of the same number in the
// same attempt would show as a second "start" line.
#pragma once

#include <string>

#include "workload/options.h"

namespace toy {

class Receipts {
 public:
  Receipts(const std::string& dir, const Identity& me);

  void start();
  // more: further fields, ready-made JSON such as "\"step\":3".
  void add(const std::string& event, const std::string& more = "");

 private:
  Identity me_;
  int fd_ = -1;
};

// Text as a JSON string, quotes included.
std::string json_string(const std::string& text);

}  // namespace toy
