// A whole log read for where its ranks ran (`ezpz topology`). Unlike the stream it looks at every
// line, for a label that names a host, and at the lines of communicators. Memory is bounded.
#pragma once

#include <memory>
#include <string_view>

#include "base/node.h"
#include "evidence/grammar.h"
#include "evidence/placements.h"

namespace ezpz::evidence {

class TopologyReader {
 public:
  // The grammar must outlive the reader.
  TopologyReader(const Grammar& grammar, NodeNaming naming);
  ~TopologyReader();

  void feed(std::string_view bytes);
  void finish();
  [[nodiscard]] Placement conclude() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ezpz::evidence
