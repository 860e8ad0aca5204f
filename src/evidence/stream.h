// The streaming matcher: bytes in, facts out. The live tee and `ezpz postmortem` run the same code.
//
// Bytes arrive in arbitrary chunks: long lines, no newline at the end, carriage-return progress
// bars, NUL, invalid UTF-8, escape sequences inside tokens, "NN: " and "<fqdn> <rank>: " labels
// (stripped, kept as the fact's label). Chunk boundaries never change the facts. Memory is bounded:
// a line (or a part of one between carriage returns) longer than kMaxLine is matched on its first
// kMaxLine bytes, and at most kMaxFacts facts are kept: the first ones, then the first of every
// pattern and host, and in the end those of patterns not seen yet. Of a message that blames nobody
// and names no host the first 32 are kept. Placements beyond the first few hundred go to the
// topology only.
//
// Not thread-safe: one stream, one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.h"
#include "evidence/grammar.h"
#include "evidence/progress.h"
#include "evidence/topology.h"

namespace ezpz::evidence {

constexpr size_t kMaxLine = size_t{64} * 1024;
constexpr size_t kMaxFacts = 4096;

class Stream {
 public:
  using OnFact = std::function<void(const Fact&)>;
  using OnProgress = std::function<void(const Progress&)>;

  // The grammar must outlive the stream.
  explicit Stream(const Grammar& grammar);
  ~Stream();

  // Called for each fact that is kept, as it is found, before feed() returns. Not called for noted
  // facts: whoever notes one has it, and may do so while it is called. A line is matched when it
  // ends, or at finish().
  void on_fact(OnFact);
  // Called at most once per feed(), when a step or checkpoint was seen in it.
  void on_progress(OnProgress);

  void feed(std::string_view bytes);
  // A fact from elsewhere (scheduler, probe, a signal we sent), in the order it became known.
  void note(Fact);
  // The output has ended: an unfinished last line is matched now.
  void finish();

  [[nodiscard]] const std::vector<Fact>& facts() const;
  [[nodiscard]] const Progress& progress() const;
  [[nodiscard]] const Topology& topology() const;
  // Lines so far, an unfinished last one included.
  [[nodiscard]] int64_t lines() const;
  [[nodiscard]] int64_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ezpz::evidence
