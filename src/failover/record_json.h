// Facts, attempts, verdicts and decisions as the journal holds them, and attempts read back: what a
// replay needs to reach the same verdict.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/node.h"
#include "launch/plan.h"
#include "verdict/attempt.h"
#include "verdict/policy.h"
#include "verdict/verdict.h"

namespace ezpz::failover {

Json to_json(const Fact&);
Json to_json(const Exit&);
Json to_json(const evidence::Progress&);
Json to_json(const verdict::SchedulerView&);
Json to_json(const verdict::AttemptRecord&);
Json to_json(const verdict::Verdict&, const std::vector<Fact>& facts);
Json to_json(const verdict::Decision&);
Json to_json(const verdict::ProbeOutcome&);
// {"networks": [{"name", "hosts"}], "providers": [...], "versions": [...]}: what ranks said of what
// they run on, host keys by node_key.
Json equipment_json(const std::vector<Fact>&, const verdict::NodeKey& node_key);
Json spellings_json(const std::vector<Node>&);
// "host": [ranks], by host, from rank -> host.
Json placement_json(const std::map<int, std::string>& host_of_rank);

// What to_json(AttemptRecord) wrote; parts that are missing stay at their defaults.
verdict::AttemptRecord attempt_from_json(const Json&);

}  // namespace ezpz::failover
