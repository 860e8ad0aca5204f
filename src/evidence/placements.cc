#include "evidence/placements.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace ezpz::evidence {
namespace {

// A log is hostile input: whatever it claims, this much is kept.
constexpr size_t kMaxRanks = size_t{1} << 18;  // the largest machines run fewer
constexpr size_t kMaxHosts = size_t{1} << 16;
constexpr size_t kMaxSpellings = 4;
constexpr size_t kMaxHostName = 255;
constexpr size_t kMaxChanges = 4;   // of one rank's host
constexpr size_t kMaxLaunches = 2;  // with all their claims
constexpr size_t kMaxEarlier = 64;
constexpr size_t kMaxListed = 64;  // conflicts and moves

std::string at_line(int64_t line) { return "line " + std::to_string(line); }

// Ranks below size that are not in the ascending list.
std::string missing(const std::vector<int>& present, int size) {
  std::string text;
  const auto add = [&text](int first, int last) {
    if (first > last) return;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
  };
  int next = 0;
  for (const int rank : present) {
    add(next, rank - 1);
    next = rank + 1;
  }
  add(next, size - 1);
  return text;
}

}  // namespace

// A table's claims, weighed.
struct Placements::Settled {
  struct Moved {
    int from;
    int to;
    int64_t line;
  };
  std::map<int, Seen> placed;
  std::map<int, std::vector<Seen>> conflicts;
  std::map<int, Moved> moves;
};

int Placements::host_index(Table* table, const std::string& spelled) const {
  if (const auto known = table->host_of_spelling.find(spelled);
      known != table->host_of_spelling.end()) {
    return known->second;
  }
  if (table->host_of_spelling.size() >= kMaxHosts) return -1;
  std::string name = node_key(spelled, naming_);
  const auto [found, fresh] =
      table->host_of_name.try_emplace(name, static_cast<int>(table->hosts.size()));
  if (fresh) table->hosts.push_back({std::move(name), {}, 0});
  std::vector<std::string>& spellings = table->hosts[static_cast<size_t>(found->second)].spelled;
  if (spellings.size() < kMaxSpellings) spellings.push_back(spelled);
  table->host_of_spelling.emplace(spelled, found->second);
  return found->second;
}

void Placements::add(Table* table, int rank, const std::string& host, int64_t line) const {
  if (rank < 0 || host.empty() || host.size() > kMaxHostName) return;
  const int index = host_index(table, host);
  if (index < 0 || (table->ranks.size() >= kMaxRanks && !table->ranks.contains(rank))) {
    table->full = true;
    return;
  }
  table->hosts[static_cast<size_t>(index)].last_line = line;
  Claimed& claimed = table->ranks[rank];
  if (!claimed.rows.empty() && claimed.rows.back().host == index) return;
  if (claimed.rows.size() < kMaxChanges) {
    claimed.rows.push_back({index, line});
  } else {
    claimed.too_many = true;
  }
}

// Null for a launch whose claims are no longer kept.
Placements::Launch* Placements::launch_of(const std::string& step_id, int64_t line) {
  if (step_id.empty() || step_id == current().step_id) return &current();
  for (Launch& launch : launches_) {
    if (launch.step_id == step_id) return &launch;
  }
  for (const Placement::Launch& launch : earlier_) {
    if (launch.step_id == step_id) return nullptr;
  }
  // What was claimed before the first step was named is that step's.
  if (!current().step_id.empty()) launches_.emplace_back();
  current().step_id = step_id;
  current().line = line;
  if (launches_.size() > kMaxLaunches) {
    const Launch& oldest = launches_.front();
    if (earlier_.size() == kMaxEarlier) earlier_.erase(earlier_.begin());
    earlier_.push_back(
        {oldest.step_id, oldest.line, oldest.told.ranks.size(), oldest.told.hosts.size()});
    launches_.erase(launches_.begin());
  }
  return &current();
}

void Placements::claim(const std::vector<int>& ranks, const std::string& host,
                       const std::string& step_id, int64_t line) {
  Launch* const launch = launch_of(step_id, line);
  if (launch == nullptr) return;
  for (const int rank : ranks) add(&launch->told, rank, host, line);
}

void Placements::claim_in_group(int rank, int size, const std::string& host, int64_t line) {
  Launch& launch = current();
  if (rank < 0 || rank >= size || size < launch.group_size) return;
  if (size > launch.group_size) {
    launch.group = Table();
    launch.group_size = size;
  }
  add(&launch.group, rank, host, line);
}

void Placements::claim_by_label(int rank, const std::string& host, int64_t line) {
  Launch& launch = current();
  ++launch.labelled;
  add(&launch.labels, rank, host, line);
}

void Placements::world_size(int size, int64_t line) {
  if (size <= 0) return;
  auto& sizes = current().world_sizes;
  const bool known =
      std::any_of(sizes.begin(), sizes.end(), [&](const auto& told) { return told.first == size; });
  if (!known && sizes.size() < kMaxChanges) sizes.emplace_back(size, line);
}

Placements::Settled Placements::settle(const Table& table) {
  Settled settled;
  for (const auto& [rank, claimed] : table.ranks) {
    const std::vector<Seen>& rows = claimed.rows;
    bool contradiction = claimed.too_many;
    for (size_t i = 0; i + 1 < rows.size(); ++i) {
      const KnownHost& former = table.hosts[static_cast<size_t>(rows[i].host)];
      if (former.last_line >= rows[i + 1].line) contradiction = true;
    }
    if (contradiction) {
      settled.conflicts[rank] = rows;
      continue;
    }
    settled.placed.emplace(rank, rows.back());
    if (rows.size() > 1) {
      settled.moves[rank] = {rows[rows.size() - 2].host, rows.back().host, rows.back().line};
    }
  }
  return settled;
}

// Puts the tables of one launch together.
class Placements::Conclusion {
 public:
  explicit Conclusion(const Launch& launch) : launch_(launch) {}

  Placement draw() {
    placement_.step_id = launch_.step_id;
    take_world_size();
    take(launch_.told, settle(launch_.told));
    take_labels();
    take_group();
    drop_nobodies();
    list_hosts();
    for (const Table* table : {&launch_.told, &launch_.labels, &launch_.group}) {
      if (table->full) remark("more hosts or ranks than any machine has: the rest is left out");
    }
    return std::move(placement_);
  }

 private:
  using Claims = std::vector<Placement::Claim>;

  void remark(std::string text) { placement_.remarks.push_back(std::move(text)); }

  static Claims claims_of(const Table& table, const std::vector<Seen>& rows) {
    Claims claims;
    for (const Seen& seen : rows) {
      const std::string& host = table.hosts[static_cast<size_t>(seen.host)].name;
      const bool known = std::any_of(claims.begin(), claims.end(),
                                     [&](const auto& claim) { return claim.host == host; });
      if (!known) claims.push_back({host, seen.line});
    }
    return claims;
  }

  void take_world_size() {
    const auto& sizes = launch_.world_sizes;
    if (sizes.size() == 1) {
      placement_.world_size = sizes[0].first;
      placement_.world_size_why = at_line(sizes[0].second);
      return;
    }
    std::vector<std::string> told;
    told.reserve(sizes.size());
    for (const auto& [size, line] : sizes) {
      told.push_back(std::to_string(size) + " (" + at_line(line) + ")");
    }
    placement_.world_size_why = told.empty() ? "not told" : "told as " + join(told, " and as ");
  }

  // A rank that an earlier table places elsewhere becomes a contradiction.
  void take(const Table& table, const Settled& settled) {
    for (const auto& [rank, seen] : settled.placed) {
      const KnownHost& host = table.hosts[static_cast<size_t>(seen.host)];
      const Placement::Claim claim{host.name, seen.line};
      for (const std::string& spelled : host.spelled) spelled_[host.name].insert(spelled);
      if (const auto disputed = conflicts_.find(rank); disputed != conflicts_.end()) {
        if (disputed->second.size() < kMaxChanges) disputed->second.push_back(claim);
        continue;
      }
      const auto [found, fresh] = placed_.try_emplace(rank, claim);
      if (fresh || found->second.host == claim.host) continue;
      conflicts_[rank] = {found->second, claim};
      placed_.erase(found);
    }
    for (const auto& [rank, rows] : settled.conflicts) {
      conflicts_.try_emplace(rank, claims_of(table, rows));
      placed_.erase(rank);
    }
    for (const auto& [rank, moved] : settled.moves) {
      const std::string& from = table.hosts[static_cast<size_t>(moved.from)].name;
      const std::string& to = table.hosts[static_cast<size_t>(moved.to)].name;
      moves_.try_emplace(rank, Placement::Move{{}, from, to, moved.line});
    }
  }

  void take_labels() {
    if (launch_.labelled == 0) return;
    if (launch_.labelled >= launch_.unlabelled) {
      take(launch_.labels, settle(launch_.labels));
    } else {
      remark("lines that begin like a label (host rank: ) are too few to be labels: " +
             std::to_string(launch_.labelled));
    }
  }

  void take_group() {
    if (launch_.group_size == 0) return;
    const std::string what =
        "the largest communicator told of has " + std::to_string(launch_.group_size) + " ranks";
    if (placement_.world_size && *placement_.world_size != launch_.group_size) {
      remark(what + " of " + std::to_string(*placement_.world_size) +
             ": its ranks are not the job's, and are left out");
      return;
    }
    if (!placement_.world_size && !placed_.empty() &&
        placed_.rbegin()->first >= launch_.group_size) {
      remark(what + ", fewer than the job: its ranks are not the job's, and are left out");
      return;
    }
    // Moves are not believed here: hosts of different parts speak one after the other as well.
    std::map<int, Claims> disputed;
    for (const auto& [rank, claimed] : launch_.group.ranks) {
      if (claimed.rows.size() > 1) disputed[rank] = claims_of(launch_.group, claimed.rows);
    }
    if (disputed.empty()) {
      take(launch_.group, settle(launch_.group));
      if (!placement_.world_size && launch_.world_sizes.empty()) {
        placement_.world_size = launch_.group_size;
        placement_.world_size_why = "the largest communicator told of";
      }
      return;
    }
    remark(what + ", and several hosts claim one rank of it: parts of a larger job, or several " +
           "attempts; it is left out");
    for (auto& [rank, claims] : disputed) {
      if (!placed_.contains(rank)) conflicts_.try_emplace(rank, std::move(claims));
    }
  }

  void drop_nobodies() {
    if (!placement_.world_size) return;
    std::set<int> nobody;
    const auto drop_from = [&](auto* map) {
      for (auto at = map->lower_bound(*placement_.world_size); at != map->end();) {
        nobody.insert(at->first);
        at = map->erase(at);
      }
    };
    drop_from(&placed_);
    drop_from(&conflicts_);
    drop_from(&moves_);
    placement_.nobody.assign(nobody.begin(), nobody.end());
    if (nobody.empty()) return;
    remark("a world of " + std::to_string(*placement_.world_size) +
           " has no place for these ranks, which are left out: " + ranges(placement_.nobody));
  }

  void list_hosts() {
    std::map<std::string, size_t> index;
    std::vector<int> ranks;
    for (const auto& [rank, claim] : placed_) {
      ranks.push_back(rank);
      const auto [found, fresh] = index.try_emplace(claim.host, placement_.hosts.size());
      if (fresh) {
        const std::set<std::string>& spelled = spelled_[claim.host];
        placement_.hosts.push_back({claim.host, {spelled.begin(), spelled.end()}, {}});
      }
      placement_.hosts[found->second].ranks.push_back(rank);
    }
    std::vector<int> disputed;
    for (const auto& [rank, claims] : conflicts_) {
      disputed.push_back(rank);
      list_conflict(rank, claims);
    }
    for (const auto& [rank, move] : moves_) {
      if (placed_.contains(rank)) list_move(rank, move);
    }
    placement_.unplaced =
        placement_.world_size ? missing(ranks, *placement_.world_size) : ranges(disputed);
  }

  // Ranks that the same hosts claim share an entry, which has the lines of the first.
  void list_conflict(int rank, const Claims& claims) {
    const auto same_host = [](const auto& a, const auto& b) { return a.host == b.host; };
    for (Placement::Conflict& known : placement_.conflicts) {
      if (std::equal(claims.begin(), claims.end(), known.claims.begin(), known.claims.end(),
                     same_host)) {
        known.ranks.push_back(rank);
        return;
      }
    }
    if (placement_.conflicts.size() < kMaxListed) {
      placement_.conflicts.push_back({{rank}, claims});
    } else if (placement_.conflicts.size() == kMaxListed && !more_conflicts_) {
      more_conflicts_ = true;
      remark("more contradictions than are listed");
    }
  }

  void list_move(int rank, const Placement::Move& move) {
    for (Placement::Move& known : placement_.moves) {
      if (known.from == move.from && known.to == move.to) {
        known.ranks.push_back(rank);
        return;
      }
    }
    if (placement_.moves.size() == kMaxListed) return;
    placement_.moves.push_back(move);
    placement_.moves.back().ranks = {rank};
  }

  const Launch& launch_;
  Placement placement_;
  std::map<int, Placement::Claim> placed_;
  std::map<int, Claims> conflicts_;
  std::map<int, Placement::Move> moves_;
  std::map<std::string, std::set<std::string>> spelled_;
  bool more_conflicts_ = false;
};

Placement Placements::conclude() const {
  Placement placement = Conclusion(launches_.back()).draw();
  placement.earlier = earlier_;
  for (size_t i = 0; i + 1 < launches_.size(); ++i) {
    const Launch& launch = launches_[i];
    placement.earlier.push_back(
        {launch.step_id, launch.line, launch.told.ranks.size(), launch.told.hosts.size()});
  }
  return placement;
}

}  // namespace ezpz::evidence
