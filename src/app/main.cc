// ezpz: one binary, one subcommand a job.
#include <stdio.h>

#include <string>

#include "app/command.h"
#include "app/version.h"
#include "base/log.h"
#include "base/text.h"

namespace ezpz::app {
namespace {

constexpr Command kCommands[] = {
    {"launch", "run a distributed job; with --auto-retry, survive the loss of nodes", run_launch},
    {"submit", "write a batch script for such a job and submit it", run_submit},
    {"info", "show the machine, scheduler, job and hosts ezpz sees, and why", run_info},
    {"doctor", "check the job, its site and its nodes before they cost hours", run_doctor},
    {"report", "tell what happened in a job, from its journal", run_report},
    {"postmortem", "say what ended a job and who is to blame, from its log", run_postmortem},
    {"topology", "tell from a log which host ran which rank", run_topology},
    {"patterns", "list the failure patterns, or try them on a log", run_patterns},
    {"flops", "tell what a model costs to train, and what a measured speed means", run_flops},
    {"bench", "run a table of cells, one after the other, and compare their speeds", run_bench},
    {"history", "list the runs under a directory, or compare two", run_history},
    {"export-amsc", "make a row of a benchmark's table of a run, or say why not", run_export_amsc},
    {"train", "train a Llama-style model: the reference workload", run_train},
    {"hostlist", "expand or compress a SLURM host list", run_hostlist},
    {"rank", "(on a node) set a rank's variables, then become the command", run_rank},
    {"local-run", "", run_local_run},
    {"ssh-run", "", run_ssh_run},
    {"ssh-node", "", run_ssh_node},
    {"node-check", "", run_node_check},
    {"doctor-node", "", run_doctor_node},
};

std::string overview() {
  std::string text =
      "usage: ezpz COMMAND [flags]\n\n"
      "Launches distributed training on clusters and on one machine, says what died, where, and "
      "on\n"
      "what evidence, swaps the sick node for a spare and relaunches.\n\nCommands\n";
  for (const Command& command : kCommands) {
    if (command.summary.empty()) continue;
    std::string line = "  " + std::string(command.name);
    line.resize(14, ' ');
    text += line + std::string(command.summary) + "\n";
  }
  return text + "\nezpz COMMAND --help tells more. ezpz --version prints the version.\n";
}

int unknown_command(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (!command.summary.empty()) names.emplace_back(command.name);
  }
  const auto meant = nearest(word, names);
  return usage_error("unknown command: " + word +
                     (meant ? " (did you mean " + *meant + "?)" : " (see ezpz --help)"));
}

int run(const Words& words) {
  if (words.empty()) {
    fputs(overview().c_str(), stderr);
    return kUsageError;
  }
  if (words[0] == "-h" || words[0] == "--help" || words[0] == "help") {
    fputs(overview().c_str(), stdout);
    return 0;
  }
  if (words[0] == "--version" || words[0] == "version") {
    printf("ezpz %s\n", std::string(kVersion).c_str());
    return 0;
  }
  for (const Command& command : kCommands) {
    if (words[0] == command.name) return command.run(Words(words.begin() + 1, words.end()));
  }
  return unknown_command(words[0]);
}

}  // namespace

int usage_error(const std::string& message) {
  log::error(message);
  return kUsageError;
}

}  // namespace ezpz::app

int main(int argc, char** argv) { return ezpz::app::run(ezpz::app::Words(argv + 1, argv + argc)); }
