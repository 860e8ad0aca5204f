#include "evidence/prefaces.h"

#include <algorithm>
#include <utility>

namespace ezpz::evidence {
namespace {

// A log is hostile input: no more than this many are remembered at a time.
constexpr size_t kMostRemembered = 64;

bool same_source(const Origin& a, const Origin& b) {
  return a.host == b.host && a.ranks == b.ranks;
}

// True when something was taken.
bool take(const Fact& from, Fact* to) {
  bool taken = false;
  const auto fill = [&taken](const auto& source, auto* target, bool lacking, bool given) {
    if (!lacking || !given) return;
    *target = source;
    taken = true;
  };
  fill(from.host, &to->host, to->host.empty(), !from.host.empty());
  fill(from.ranks, &to->ranks, to->ranks.empty(), !from.ranks.empty());
  fill(from.ip, &to->ip, to->ip.empty(), !from.ip.empty());
  fill(from.reason, &to->reason, to->reason.empty(), !from.reason.empty());
  fill(from.step_id, &to->step_id, to->step_id.empty(), !from.step_id.empty());
  fill(from.seq, &to->seq, to->seq < 0, from.seq >= 0);
  // How a process ended is one thing, said by its signal or its code.
  const bool ended = to->signal != 0 || to->code >= 0;
  fill(from.signal, &to->signal, !ended, from.signal != 0);
  fill(from.code, &to->code, !ended, from.code >= 0);
  return taken;
}

}  // namespace

void Prefaces::drop_out_of_reach(int64_t line) {
  std::erase_if(said_, [line](const Said& said) { return line - said.line > kPrefaceReach; });
}

void Prefaces::remember(uint16_t entry, const std::string& group, Fact captured, Origin origin,
                        int64_t line) {
  drop_out_of_reach(line);
  std::erase_if(said_, [&](const Said& said) {
    return said.group == group && same_source(said.origin, origin);
  });
  if (said_.size() == kMostRemembered) said_.erase(said_.begin());
  said_.push_back({entry, group, std::move(captured), std::move(origin), line});
}

bool Prefaces::latest_is_one_of(const std::vector<uint16_t>& entries, const std::string& group,
                                const Origin& origin, int64_t line) const {
  return std::any_of(said_.begin(), said_.end(), [&](const Said& said) {
    return said.group == group && line - said.line <= kPrefaceReach &&
           same_source(said.origin, origin) &&
           std::find(entries.begin(), entries.end(), said.entry) != entries.end();
  });
}

bool Prefaces::was_said(const std::vector<uint16_t>& entries, int64_t line) const {
  return std::any_of(said_.begin(), said_.end(), [&](const Said& said) {
    return line - said.line <= kPrefaceReach &&
           std::find(entries.begin(), entries.end(), said.entry) != entries.end();
  });
}

void Prefaces::complete(const std::vector<uint16_t>& entries, const Origin& origin, int64_t line,
                        Fact* fact) {
  drop_out_of_reach(line);
  for (size_t i = said_.size(); i > 0; --i) {
    const Said& said = said_[i - 1];
    if (!same_source(said.origin, origin)) continue;
    if (std::find(entries.begin(), entries.end(), said.entry) == entries.end()) continue;
    if (take(said.captured, fact)) said_.erase(said_.begin() + static_cast<ptrdiff_t>(i - 1));
  }
}

}  // namespace ezpz::evidence
