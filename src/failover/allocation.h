// The hosts of a failover run and what became of each: active, spare, retired or benched. Pure: the
// loop decides, this keeps the books, and no host is ever lost or in two places.
//
// Hosts are told apart by key; every text is written in the scheduler's own spelling.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.h"
#include "base/node.h"
#include "base/result.h"
#include "verdict/verdict.h"

namespace ezpz::failover {

// One host taken out, in the order it happened. Never removed: a benched host that comes back into
// use keeps its line.
struct Retirement {
  Node host;
  verdict::Provenance provenance = verdict::Provenance::scraped;
  int attempt = 0;            // after which it was taken out
  Kind kind = Kind::unknown;  // that attempt's verdict
  Node replaced_by;           // empty for a spare, and when the job shrank
  bool doubtful = false;      // the seat rule: perhaps it was the program
  bool innocent = false;      // a blind guess that turned out wrong
};

class Allocation {
 public:
  // The first active_size hosts train, the rest wait. An error when there are too few, when
  // active_size is 0, or when two hosts are the same node.
  static Result<Allocation> split(std::vector<Node> hosts, size_t active_size);

  [[nodiscard]] const std::vector<Node>& active() const { return active_; }
  // In the order they will be used; the benched ones, behind the others, are among them.
  // A copy: who walks it may retire what it names.
  [[nodiscard]] std::vector<Node> spare() const { return spare_; }
  [[nodiscard]] const std::vector<Node>& retired() const { return retired_; }
  // Those spares that were swapped out on a guess.
  [[nodiscard]] std::vector<Node> benched() const;
  [[nodiscard]] const std::vector<Retirement>& retirements() const { return retirements_; }

  // Whom swap() would take.
  [[nodiscard]] std::optional<Node> next_spare() const;
  [[nodiscard]] size_t spares_left() const { return spare_.size(); }

  // Puts the next spare into the place of an active host and returns it. The host is retired, or,
  // when the provenance is blind, benched: it becomes the last spare.
  Result<Node> swap(std::string_view key, verdict::Provenance, int attempt, Kind);
  // Takes an active host out without replacement (--min-nodes); never the last one. False when
  // there is no such active host.
  bool shrink(std::string_view key, verdict::Provenance, int attempt, Kind);
  // An active host is convicted and the job ends all the same: it is written down, nothing moves.
  void note_loss(std::string_view key, verdict::Provenance, int attempt, Kind);
  // A spare that is DOWN, or that failed a probe, is not to be used. False when it is no spare.
  bool retire_spare(std::string_view key, verdict::Provenance, int attempt, Kind);

  // Marks the latest retirement of the host. False when it was never taken out.
  bool mark_doubtful(std::string_view key);
  bool mark_innocent(std::string_view key);

  // One active host a line.
  [[nodiscard]] std::string active_hostfile_text() const;
  // "host  provenance  attempt=N  verdict=V", then "  doubtful" and "  innocent" where so marked;
  // one line for each retirement.
  [[nodiscard]] std::string bad_nodes_text() const;
  // What a launcher must not use: the retired.
  [[nodiscard]] std::vector<std::string> excluded() const;

 private:
  Allocation() = default;
  bool retire_from(std::vector<Node>& list, std::string_view key, verdict::Provenance, int attempt,
                   Kind);
  Retirement* latest_retirement(std::string_view key);

  std::vector<Node> active_;
  std::vector<Node> spare_;
  std::vector<Node> retired_;
  std::vector<Retirement> retirements_;
};

}  // namespace ezpz::failover
