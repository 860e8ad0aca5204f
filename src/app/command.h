// One subcommand of ezpz: its name, its line in the overview, and what runs it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ezpz::app {

using Words = std::vector<std::string>;

// Exit codes of ezpz itself; launch passes on the job's.
constexpr int kUsageError = 2;

struct Command {
  std::string_view name;
  std::string_view summary;  // empty: internal, not in the overview
  int (*run)(const Words& words);
};

int run_launch(const Words&);
int run_info(const Words&);
int run_submit(const Words&);
int run_doctor(const Words&);
int run_report(const Words&);
int run_postmortem(const Words&);
int run_flops(const Words&);
int run_export_amsc(const Words&);
int run_history(const Words&);
int run_bench(const Words&);
int run_train(const Words&);
int run_hostlist(const Words&);
int run_topology(const Words&);
int run_patterns(const Words&);
int run_rank(const Words&);
int run_local_run(const Words&);
int run_ssh_run(const Words&);
int run_ssh_node(const Words&);
int run_node_check(const Words&);
int run_doctor_node(const Words&);

// Prints "ezpz: error: ..." and returns kUsageError.
int usage_error(const std::string& message);

}  // namespace ezpz::app
