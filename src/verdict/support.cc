#include "verdict/support.h"

#include "verdict/death.h"

namespace ezpz::verdict {
namespace {

// After the teardown began ranks die everywhere; a lost contact or a lost node means something
// still.
bool is_an_echo(const Exhibit& exhibit) {
  if (!exhibit.in_teardown) return false;
  switch (exhibit.fact->event) {
    case Event::node_lost:
    case Event::unreachable:
    case Event::lost_of_several:
      return false;
    default:
      return exhibit.fact->kind != Kind::gpu_fault;
  }
}

// A program that fails on a host is the program's affair, and so are its complaints about others.
bool speaks_of_the_node(const Fact& fact) {
  // Who refuses a connection is alive: a service is missing there.
  if (fact.reason.find("Connection refused") != std::string::npos) return false;
  switch (fact.event) {
    case Event::node_lost:
    case Event::unreachable:
    case Event::lost_of_several:
    case Event::launcher:
    case Event::part_failed:
      return true;
    case Event::death:
      return hand_in_death(fact) == Hand::outside;
    default:
      return fact.kind == Kind::node_failure || fact.kind == Kind::gpu_fault;
  }
}

}  // namespace

std::string speaker_of(const Fact& fact) {
  if (fact.source != Source::output) return std::string(to_string(fact.source));
  return fact.pattern.substr(0, fact.pattern.find('.'));
}

std::set<std::string> witnesses_against(const CaseFile& file, const std::string& host) {
  std::set<std::string> speakers;
  for (const Exhibit& exhibit : file.exhibits) {
    if (exhibit.host != host || exhibit.fact->role != Role::cause || is_an_echo(exhibit) ||
        !speaks_of_the_node(*exhibit.fact)) {
      continue;
    }
    speakers.insert(speaker_of(*exhibit.fact));
  }
  return speakers;
}

std::string named_by_several(const CaseFile& file, const std::set<std::string>& hosts) {
  std::string named;
  for (const std::string& host : hosts) {
    if (witnesses_against(file, host).size() < 2) continue;
    if (!named.empty()) return {};
    named = host;
  }
  return named;
}

}  // namespace ezpz::verdict
