#include "verdict/policy_table.h"

#include <array>

namespace ezpz::verdict {
namespace {

// clang-format off
constexpr std::array kTable{
    Row{Kind::success,            Family::ending,            Step::stop,           Step::stop,           "success"},
    Row{Kind::walltime,           Family::ending,            Step::stop,           Step::stop,           "walltime"},
    Row{Kind::cancelled,          Family::ending,            Step::stop,           Step::stop,           "cancelled"},
    Row{Kind::preempted,          Family::ending,            Step::stop,           Step::stop,           "preempted"},
    Row{Kind::node_failure,       Family::place,             Step::probe,          Step::probe_or_blind, "no_evidence"},
    Row{Kind::gpu_fault,          Family::place,             Step::probe,          Step::probe_or_blind, "no_evidence"},
    Row{Kind::fabric_fault,       Family::place,             Step::probe,          Step::probe_or_blind, "no_evidence"},
    Row{Kind::filesystem_fault,   Family::storage_or_launch, Step::retry_n_times,  Step::retry_n_times,  "filesystem_fault"},
    Row{Kind::oom,                Family::program,           Step::retry_if_moved, Step::retry_if_moved, "stuck"},
    Row{Kind::app_error,          Family::program,           Step::retry_if_moved, Step::retry_if_moved, "stuck"},
    Row{Kind::env_fault,          Family::environment,       Step::stop,           Step::stop,           "env_fault"},
    Row{Kind::launcher_fault,     Family::storage_or_launch, Step::retry_n_times,  Step::retry_n_times,  "launcher_fault"},
    Row{Kind::port_in_use,        Family::storage_or_launch, Step::retry_n_times,  Step::retry_n_times,  "port_in_use"},
    Row{Kind::collective_timeout, Family::place,             Step::probe,          Step::probe_or_blind, "no_evidence"},
    Row{Kind::hang,               Family::place,             Step::probe,          Step::probe_or_blind, "no_evidence"},
    Row{Kind::unknown,            Family::mystery,           Step::retry,          Step::probe_or_blind, "no_evidence"},
};
// clang-format on

constexpr std::array kBackoffs_s{5.0, 15.0, 45.0};

}  // namespace

std::span<const Row> policy_table() { return kTable; }

const Row& policy_row(Kind kind) { return kTable.at(static_cast<size_t>(kind)); }

std::span<const double> backoffs_s() { return kBackoffs_s; }

}  // namespace ezpz::verdict
