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
  [[nodiscard]] const std::vector<Node>& spare() const { return spare_; }
  [[nodiscard]] const std::vector<Node>& retired() const { return retired_; }
  // Swapped out on a guess: used again when no spare is left.
  [[nodiscard]] const std::vector<Node>& benched() const { return benched_; }
  [[nodiscard]] const std::vector<Retirement>& retirements() const { return retirements_; }

  // Whom swap() would take. A spare, and only then a benched host, the longest benched first.
  [[nodiscard]] std::optional<Node> next_spare() const;
  // Spare and benched hosts.
  [[nodiscard]] size_t spares_left() const { return spare_.size() + benched_.size(); }

  // Puts the next spare into the place of an active host and returns it. The host is retired, or
  // benched when the provenance is blind.
  Result<Node> swap(std::string_view key, verdict::Provenance, int attempt, Kind);
  // Takes an active host out without replacement (--min-nodes); never the last one.
  Status shrink(std::string_view key, verdict::Provenance, int attempt, Kind);
  // A spare or benched host that is DOWN, or that failed a probe, is not to be used.
  Status retire_spare(std::string_view key, verdict::Provenance, int attempt, Kind);
  // Benched hosts become spares again, behind the others.
  void restore_benched();

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
  Retirement* latest_retirement(std::string_view key);

  std::vector<Node> active_;
  std::vector<Node> spare_;
  std::vector<Node> retired_;
  std::vector<Node> benched_;
  std::vector<Retirement> retirements_;
};

}  // namespace ezpz::failover
