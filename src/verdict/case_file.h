// An attempt's facts laid out for judging: each with the active host it speaks of and on which side
// of the teardown it stands. Says nothing about blame.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verdict/attempt.h"
#include "verdict/verdict.h"

namespace ezpz::verdict {

enum class Standing {
  nowhere,  // names no host, or one that cannot be told from its ranks
  active,   // names a host of this attempt
  retired,  // names a host that was retired before this attempt
  outside,  // names some other host
};

struct Exhibit {
  size_t index = 0;  // into AttemptRecord::facts
  const Fact* fact = nullptr;
  Standing standing = Standing::nowhere;
  std::string host;          // key of the active host it speaks of; empty unless standing is active
  std::string named;         // key of the host it names, whatever its standing
  bool in_teardown = false;  // is, or became known after, the first sign of somebody ending it
};

struct CaseFile {
  const AttemptRecord& record;
  std::map<int, std::string> host_of_rank;  // keys
  std::vector<Exhibit> exhibits;            // one per fact, in the same order
  std::optional<size_t> teardown;           // the fact that marks its beginning
  // A log that names one host and shows ranks that talk inside it and none that talk to another.
  bool talks_within_one_host = false;
  bool we_ended_it = false;  // that mark is a signal of ours
  NodeKey node_key = {};

  [[nodiscard]] bool is_active(const std::string& key) const;
  [[nodiscard]] std::vector<int> ranks_on(const std::string& host) const;
  // The job had hosts besides this one. Where its hosts are not known, only a launcher's word
  // counts: that ranks ran, died or were to be reached on another. A name that merely stands in
  // some line is none of that.
  [[nodiscard]] bool has_hosts_besides(const std::string& host) const;
  // Ranks of an exhibit; when it names none but an active host, that host's.
  [[nodiscard]] std::vector<int> seats(const Exhibit&) const;
  // Deaths that nothing else explains: before the teardown, and no victim by their grammar.
  [[nodiscard]] std::vector<const Exhibit*> first_deaths() const;
};

// The record must outlive the case file.
CaseFile open_case(const AttemptRecord& record, const NodeKey& node_key);

// The active hosts that the exhibits name.
std::set<std::string> hosts_of(const std::vector<const Exhibit*>& exhibits);

}  // namespace ezpz::verdict
