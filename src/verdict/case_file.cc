#include "verdict/case_file.h"

#include <algorithm>
#include <map>

#include "verdict/death.h"

namespace ezpz::verdict {
namespace {

// Everything that turns a name or a rank into the key of a host.
struct Places {
  const AttemptRecord& record;
  const NodeKey& node_key;
  std::map<int, std::string> host_of_rank;
  std::map<int, std::string> host_even_if_dead;
  std::map<int, std::string> host_of_programs_rank;    // as the output alone tells
  std::map<std::string, std::string> host_of_address;  // empty: several say it is theirs
  bool ranks_are_renumbered = false;

  Places(const AttemptRecord& r, const NodeKey& key) : record(r), node_key(key) {
    // The launcher's own map first; what the output says fills the gaps only.
    for (const auto& [rank, host] : record.host_of_rank) host_of_rank.emplace(rank, key_of(host));
    for (const Fact& fact : record.facts) {
      if (fact.event != Event::placement || fact.host.empty()) continue;
      for (const int rank : fact.ranks) {
        host_of_rank.emplace(rank, key_of(fact.host));
        host_of_programs_rank.emplace(rank, key_of(fact.host));
      }
    }
    for (const Fact& fact : record.facts) {
      if (fact.event != Event::placement || fact.ip.empty()) continue;
      const std::string host = key_of(fact.host.empty() ? fact.label : fact.host);
      const auto [known, fresh] = host_of_address.emplace(fact.ip, host);
      if (!fresh && known->second != host) known->second.clear();
    }
    // Where a rank died it ran. That does not tell which other ranks ran there.
    host_even_if_dead = host_of_rank;
    for (const Fact& fact : record.facts) {
      if (fact.event != Event::death || fact.host.empty()) continue;
      for (const int rank : fact.ranks) host_even_if_dead.emplace(rank, key_of(fact.host));
    }
  }

  [[nodiscard]] std::string key_of(std::string_view name) const {
    return node_key ? node_key(name) : std::string(name);
  }
  // The one host all the ranks ran on; empty when there is none or not one.
  [[nodiscard]] std::string host_of(const std::vector<int>& ranks) const {
    return one_host(host_even_if_dead, ranks);
  }
  [[nodiscard]] std::string host_by_program(const std::vector<int>& ranks) const {
    return one_host(host_of_programs_rank, ranks);
  }
  static std::string one_host(const std::map<int, std::string>& host_of_rank,
                              const std::vector<int>& ranks) {
    std::string host;
    for (const int rank : ranks) {
      const auto found = host_of_rank.find(rank);
      if (found == host_of_rank.end()) return {};
      if (!host.empty() && host != found->second) return {};
      host = found->second;
    }
    return host;
  }
  [[nodiscard]] bool is_active(const std::string& key) const {
    return std::find(record.active.begin(), record.active.end(), key) != record.active.end();
  }
  [[nodiscard]] bool is_retired(const std::string& key) const {
    const auto& retired = record.retired_earlier;
    return std::find(retired.begin(), retired.end(), key) != retired.end();
  }
};

// A label says where a line was printed. That is where the trouble is only for troubles a rank can
// see nowhere but at home; a rank that complains about its peers is a reporter.
bool label_is_the_place(Kind kind) {
  switch (kind) {
    case Kind::gpu_fault:
    case Kind::filesystem_fault:
    case Kind::env_fault:
    case Kind::oom:
    case Kind::app_error:
      return true;
    default:
      return false;
  }
}

// torchrun numbers the ranks of its workers itself: to the launcher that started it, one agent is
// one rank. What its workers call rank 3 is not the launcher's rank 3.
bool numbers_ranks_anew(const AttemptRecord& record) {
  return std::any_of(record.facts.begin(), record.facts.end(),
                     [](const Fact& fact) { return fact.pattern.starts_with("torchrun."); });
}

std::string name_the_host(const Fact& fact, const Places& places) {
  if (!fact.host.empty()) return places.key_of(fact.host);
  if (fact.event == Event::message && places.ranks_are_renumbered) {
    std::string host = places.host_by_program(fact.ranks);
    if (!host.empty() || !fact.ranks.empty()) return host;
  }
  if (std::string host = places.host_of(fact.ranks); !host.empty()) return host;
  if (!fact.ranks.empty()) return {};
  if (!fact.ip.empty()) {
    // An address is a host only where the site knows which, or where the host itself said so.
    if (std::string host = places.key_of(fact.ip); places.is_active(host)) return host;
    const auto told = places.host_of_address.find(fact.ip);
    if (told != places.host_of_address.end() && !told->second.empty()) return told->second;
  }
  if (!fact.label.empty() && (label_is_the_place(fact.kind) || fact.event == Event::part_failed)) {
    return places.key_of(fact.label);
  }
  return {};
}

Exhibit make_exhibit(size_t index, const Fact& fact, const Places& places) {
  Exhibit exhibit;
  exhibit.index = index;
  exhibit.fact = &fact;
  exhibit.named = name_the_host(fact, places);
  if (exhibit.named.empty()) return exhibit;
  if (places.is_active(exhibit.named)) {
    exhibit.standing = Standing::active;
    exhibit.host = exhibit.named;
  } else {
    exhibit.standing = places.is_retired(exhibit.named) ? Standing::retired : Standing::outside;
  }
  return exhibit;
}

bool is_an_ending(Kind kind) {
  return kind == Kind::walltime || kind == Kind::cancelled || kind == Kind::preempted;
}

// From here on processes die because somebody is ending them. A death by TERM is such a mark too:
// launchers that print no banner (PALS, Hydra) end the survivors the same way.
bool begins_teardown(const Fact& fact) {
  switch (fact.event) {
    case Event::teardown:
    case Event::limit:
    case Event::aborted:
      return true;
    case Event::death:
      return hand_in_death(fact) == Hand::asked;
    case Event::message:
      return fact.role != Role::context && is_an_ending(fact.kind);
    default:
      return false;
  }
}

bool talks_within_one_host(const AttemptRecord& record) {
  if (record.active.size() != 1) return false;
  const auto has = [&record](Event event) {
    return std::any_of(record.facts.begin(), record.facts.end(),
                       [event](const Fact& fact) { return fact.event == event; });
  };
  return has(Event::within_host) && !has(Event::between_hosts);
}

}  // namespace

bool CaseFile::is_active(const std::string& key) const {
  return std::find(record.active.begin(), record.active.end(), key) != record.active.end();
}

std::vector<int> CaseFile::ranks_on(const std::string& host) const {
  std::vector<int> ranks;
  for (const auto& [rank, name] : host_of_rank) {
    if (name == host) ranks.push_back(rank);
  }
  return ranks;
}

bool CaseFile::has_hosts_besides(const std::string& host) const {
  if (record.active_known) return record.active.size() > 1;
  return std::any_of(exhibits.begin(), exhibits.end(), [&host](const Exhibit& exhibit) {
    switch (exhibit.fact->event) {
      case Event::death:
      case Event::placement:
      case Event::node_lost:
      case Event::unreachable:
      case Event::lost_of_several:
        return !exhibit.fact->host.empty() && exhibit.named != host;
      default:
        return false;
    }
  });
}

std::vector<int> CaseFile::seats(const Exhibit& exhibit) const {
  if (!exhibit.fact->ranks.empty()) return exhibit.fact->ranks;
  return exhibit.host.empty() ? std::vector<int>{} : ranks_on(exhibit.host);
}

std::vector<const Exhibit*> CaseFile::first_deaths() const {
  std::vector<const Exhibit*> deaths;
  for (const Exhibit& exhibit : exhibits) {
    if (exhibit.in_teardown) break;
    if (exhibit.fact->event == Event::death && exhibit.fact->role == Role::cause &&
        exhibit.standing != Standing::retired) {
      deaths.push_back(&exhibit);
    }
  }
  return deaths;
}

CaseFile open_case(const AttemptRecord& record, const NodeKey& node_key) {
  Places places(record, node_key);
  places.ranks_are_renumbered = numbers_ranks_anew(record);
  CaseFile file{record,       places.host_of_rank,           {},
                std::nullopt, talks_within_one_host(record), false,
                node_key};
  for (size_t i = 0; i < record.facts.size(); ++i) {
    const Fact& fact = record.facts[i];
    Exhibit exhibit = make_exhibit(i, fact, places);
    const bool was_ending = file.teardown.has_value();
    if (!file.teardown && begins_teardown(fact)) {
      file.teardown = i;
      file.we_ended_it = fact.source == Source::self;
    }
    // A program's own call to end is no part of the end that it brings about.
    exhibit.in_teardown = fact.event == Event::aborted ? was_ending : file.teardown.has_value();
    file.exhibits.push_back(std::move(exhibit));
  }
  return file;
}

std::set<std::string> hosts_of(const std::vector<const Exhibit*>& exhibits) {
  std::set<std::string> hosts;
  for (const Exhibit* exhibit : exhibits) {
    if (!exhibit->host.empty()) hosts.insert(exhibit->host);
  }
  return hosts;
}

}  // namespace ezpz::verdict
