// Which rank ran where, out of what a log claims. Claims may be wrong, of an earlier attempt, or of
// a part of the job; the rules, in the order they apply:
//
//  - Claims belong to the launch that the log tells last. A launch begins where the launcher names
//  a
//    step not named before; the ones before it are listed, not mixed in.
//  - A rank that the world size has no room for is nobody: dropped, and said. Two different world
//    sizes are none.
//  - A rank claimed by two hosts has moved to the later one if the former claims nothing whatever
//    from then on (a relaunch in the same log). Else it is a contradiction: placed nowhere, and
//    said.
//  - What programs say of a communicator's ranks counts only if that communicator is the whole job:
//    as large as the world, or, when no world size is told, the largest and with room for every
//    rank placed otherwise. Two hosts that claim one rank of it show that it is only a part: it is
//    left out.
//  - A label before lines counts only if, from the first on, at least half of all lines carry one:
//    "epoch2 3: loss" looks like a host and a rank, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/node.h"

namespace ezpz::evidence {

struct Placement {
  struct Host {
    std::string name;                  // the node's key
    std::vector<std::string> spelled;  // as the log writes it, a few of the ways
    std::vector<int> ranks;            // ascending
  };
  struct Claim {
    std::string host;
    int64_t line = 0;
  };
  struct Conflict {
    std::vector<int> ranks;
    std::vector<Claim> claims;
  };
  struct Move {
    std::vector<int> ranks;
    std::string from;
    std::string to;
    int64_t line = 0;
  };
  struct Launch {
    std::string step_id;
    int64_t line = 0;
    size_t ranks = 0;
    size_t hosts = 0;
  };

  std::optional<int> world_size;
  std::string world_size_why;  // where it is told, or why it is unknown
  std::string step_id;         // of the launch told; may be empty
  std::vector<Host> hosts;     // by lowest rank
  std::vector<Conflict> conflicts;
  std::vector<Move> moves;
  std::vector<Launch> earlier;
  std::string unplaced;              // ranges; of the world when its size is known
  std::vector<int> nobody;           // ranks beyond the world size
  std::vector<std::string> remarks;  // whatever else a reader must know
};

class Placements {
 public:
  explicit Placements(NodeNaming naming) : naming_(std::move(naming)) {}

  // What a launcher or a program says of ranks and their host. step_id may be empty.
  void claim(const std::vector<int>& ranks, const std::string& host, const std::string& step_id,
             int64_t line);
  // A member of a communicator of so many ranks.
  void claim_in_group(int rank, int size, const std::string& host, int64_t line);
  // A line's label.
  void claim_by_label(int rank, const std::string& host, int64_t line);
  void unlabelled_line() { current().unlabelled += current().labelled > 0 ? 1 : 0; }
  void world_size(int size, int64_t line);

  [[nodiscard]] Placement conclude() const;

 private:
  struct Seen {
    int host;
    int64_t line;  // of its first claim in this row
  };
  struct Claimed {
    std::vector<Seen> rows;  // one for each change of host, oldest first
    bool too_many = false;   // changes
  };
  struct KnownHost {
    std::string name;
    std::vector<std::string> spelled;
    int64_t last_line = 0;
  };
  // The claims of one kind of voice.
  struct Table {
    std::map<int, Claimed> ranks;
    std::vector<KnownHost> hosts;
    std::unordered_map<std::string, int> host_of_name;
    std::unordered_map<std::string, int> host_of_spelling;
    bool full = false;
  };
  struct Launch {
    std::string step_id;
    int64_t line = 0;
    Table told;
    Table labels;
    int64_t labelled = 0;    // lines
    int64_t unlabelled = 0;  // lines since the first labelled one
    Table group;
    int group_size = 0;
    std::vector<std::pair<int, int64_t>> world_sizes;  // different ones, and where
  };
  struct Settled;
  class Conclusion;

  Launch& current() { return launches_.back(); }
  Launch* launch_of(const std::string& step_id, int64_t line);
  void add(Table*, int rank, const std::string& host, int64_t line) const;
  int host_index(Table*, const std::string& spelled) const;
  static Settled settle(const Table&);

  NodeNaming naming_;
  std::vector<Launch> launches_{1};         // the last few, latest last
  std::vector<Placement::Launch> earlier_;  // what became of those before
};

}  // namespace ezpz::evidence
