// Which of the rules hold here. A rule that rests on a version nobody could see is neither told nor
// passed over in silence: its finding is unknown.
#include "doctor/known_issues.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/node.h"
#include "base/text.h"
#include "doctor/command_flags.h"
#include "doctor/node_sight.h"
#include "doctor/safe_text.h"

namespace ezpz::doctor {
namespace {

bool fits_any(const std::vector<std::string>& globs, std::string_view text) {
  return std::any_of(globs.begin(), globs.end(),
                     [text](const std::string& glob) { return glob_match(glob, text); });
}

bool holds(const VariableCondition& condition, const site::Environment& env) {
  using Kind = VariableCondition::Kind;
  const auto found = env.find(condition.name);
  const bool is_set = found != env.end();
  switch (condition.kind) {
    case Kind::set:
      return is_set;
    case Kind::unset:
      return !is_set || found->second.empty();
    case Kind::equal:
      return is_set && fits_any(condition.values, found->second);
    case Kind::other_than:
      return !is_set || !fits_any(condition.values, found->second);
  }
  return false;
}

bool holds(const FlagCondition& condition, const Argv& command) {
  const std::optional<std::string> value = flag_value(command, condition.names);
  if (!condition.none_of.empty() && value && fits_any(condition.none_of, *value)) return false;
  const bool asks_for_it = !condition.values.empty() || condition.at_least || condition.at_most ||
                           condition.none_of.empty();
  if (!asks_for_it) return true;  // only none_of: absent is fine
  if (!value) return false;
  if (!condition.values.empty()) return fits_any(condition.values, *value);
  if (condition.at_least || condition.at_most) {
    const std::optional<long> number = parse_int(*value);
    return number && *number >= condition.at_least.value_or(*number) &&
           *number <= condition.at_most.value_or(*number);
  }
  return !says_no(*value);
}

// A version that a rule asks about: its text, or why nobody knows it.
struct VersionSeen {
  std::string text;
  std::string why_not;
};

VersionSeen torch_version(const NodeSight& sight) {
  if (!sight.python) return {"", sight.python.why_not()};
  if (!sight.python->torch) return {"", sight.python->torch.why_not()};
  if (!*sight.python->torch) return {"", printable(sight.python->path) + " has no torch"};
  const Torch& torch = **sight.python->torch;
  if (torch.version.empty()) return {"", "torch does not tell its version"};
  return {torch.version, ""};
}

VersionSeen nccl_version(const NodeSight& sight) {
  VersionSeen torch = torch_version(sight);
  if (torch.text.empty()) return torch;
  const auto& mapped = (*sight.python->torch)->mapped_nccl;
  if (!mapped) return {"", mapped.why_not()};
  if (mapped->version.empty()) return {"", printable(mapped->path) + " does not tell its version"};
  return {mapped->version, ""};
}

// Empty: holds. "no": does not. Else why nobody can tell.
struct Answer {
  bool no = false;
  std::string cannot_tell;
};

Answer asked(const std::vector<VersionBound>& bounds, const VersionSeen& seen, const char* what) {
  if (bounds.empty()) return {};
  const auto numbers = version_numbers(seen.text);
  if (!numbers) {
    const std::string why = seen.text.empty() ? seen.why_not : "'" + printable(seen.text) + "'";
    return {false, std::string(what) + "'s version is not known (" + why + ")"};
  }
  return {!fits(*numbers, bounds), ""};
}

std::string what_was_seen(const KnownIssue& issue, const NodeSight& sight,
                          const NodeContext& context) {
  std::vector<std::string> seen;
  for (const VariableCondition& condition : issue.variables) {
    const auto found = sight.env.find(condition.name);
    seen.push_back(found == sight.env.end() ? condition.name + " is not set"
                                            : shown(condition.name, found->second));
  }
  for (const FlagCondition& condition : issue.flags) {
    const std::optional<std::string> value = flag_value(context.command, condition.names);
    if (!value) continue;
    const bool secret = may_be_secret(condition.names[0]);
    seen.push_back(condition.names[0] +
                   (value->empty() || secret ? "" : " " + printable(*value, 60)));
  }
  if (!issue.torch.empty()) seen.push_back("torch " + printable(torch_version(sight).text, 60));
  if (!issue.nccl.empty()) seen.push_back("NCCL " + printable(nccl_version(sight).text, 60));
  if (issue.nodes_at_least > 1 && context.nodes == 0) {
    seen.push_back(fmt::format("for jobs of {} nodes and more", issue.nodes_at_least));
  }
  return join(seen, ", ");
}

// Nothing when the rule does not hold.
std::optional<Finding> try_issue(const KnownIssue& issue, const NodeSight& sight,
                                 const NodeContext& context) {
  if (!issue.machines.empty() && !fits_any(issue.machines, context.machine.name)) return {};
  if (context.nodes != 0 && context.nodes < issue.nodes_at_least) return {};
  const bool variables = std::all_of(
      issue.variables.begin(), issue.variables.end(),
      [&sight](const VariableCondition& condition) { return holds(condition, sight.env); });
  const bool flags = std::all_of(
      issue.flags.begin(), issue.flags.end(),
      [&context](const FlagCondition& condition) { return holds(condition, context.command); });
  if (!variables || !flags) return {};
  const Answer torch = asked(issue.torch, torch_version(sight), "torch");
  const Answer nccl = asked(issue.nccl, nccl_version(sight), "NCCL");
  if (torch.no || nccl.no) return {};

  Finding finding{"known-issue:" + issue.id, issue.health, issue.text, issue.remedy,
                  issue.reference};
  const std::string& cannot = torch.cannot_tell.empty() ? nccl.cannot_tell : torch.cannot_tell;
  if (!cannot.empty()) {
    // A rule about a version alone would be asked of every job whose version is not known.
    if (issue.variables.empty() && issue.flags.empty()) return {};
    finding.health = Health::unknown;
    finding.why = "may hold here, but " + cannot + ": " + issue.text;
    return finding;
  }
  finding.why += " [" + what_was_seen(issue, sight, context) + "]";
  return finding;
}

}  // namespace

std::vector<Finding> check_known_issues(const NodeSight& sight, const NodeContext& context) {
  std::vector<Finding> findings;
  for (const KnownIssue& issue : context.issues) {
    if (std::optional<Finding> finding = try_issue(issue, sight, context)) {
      findings.push_back(*std::move(finding));
    }
  }
  if (!findings.empty()) return findings;
  const bool flags_unasked =
      context.command.empty() &&
      std::any_of(context.issues.begin(), context.issues.end(),
                  [](const KnownIssue& issue) { return !issue.flags.empty(); });
  return {{"known-issues", Health::ok,
           fmt::format("none of {} known issues holds here{}", context.issues.size(),
                       flags_unasked ? "; those about a command's flags need the command" : ""),
           "", ""}};
}

}  // namespace ezpz::doctor
