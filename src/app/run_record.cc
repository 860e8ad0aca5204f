#include "app/run_record.h"

#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/version.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/plan.h"

namespace ezpz::app {
namespace {

// A work tree on a slow file system may take long to compare with its commit; nothing waits for it.
constexpr double kGitPatience_s = 20;

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int number_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int>() : 0;
}

std::string time_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  const double time_s = found != json.end() && found->is_number() ? found->get<double>() : 0;
  return time_s > 0 ? iso8601(time_s) : std::string();
}

std::vector<std::string> names_of(const Json& json, const char* list) {
  std::vector<std::string> names;
  const auto found = json.find(list);
  if (found == json.end() || !found->is_array()) return names;
  for (const Json& item : *found) {
    if (item.is_string()) names.push_back(item.get<std::string>());
    if (item.is_object()) names.push_back(text_of(item, "name"));
  }
  return names;
}

// "Perlmutter" of "Perlmutter (NERSC)"
std::string system_of(const site::Detection& machine) {
  if (!machine.known) return "";
  const std::string& title = machine.machine.title;
  return title.empty() ? machine.machine.name : title.substr(0, title.find(" ("));
}

}  // namespace

bench::RunInfo run_info_of(const LaunchOptions& options, const SiteView& site,
                           const LaunchSetup& setup) {
  const launch::Request& request = setup.request;
  bench::RunInfo run;
  run.written_by = "ezpz " + std::string(kVersion);
  run.machine = site.machine.machine.name;
  run.system = system_of(site.machine);
  if (site.job.in_job()) run.scheduler = to_string(site.job.scheduler);
  run.job_id = setup.job_id;
  run.launcher = setup.launcher->name;
  run.world_size = request.ranks;
  run.ranks_per_node = request.ranks_per_node;
  run.gpus_per_node = request.gpus_per_node;
  run.network.expected = setup.network.wish.expected;
  run.command = launch::mask_secrets(options.command);
  const auto say = [&run](const std::string& name, const std::string& value) {
    if (!value.empty()) run.config.emplace_back(name, value);
  };
  say("ranks", std::to_string(request.ranks));
  say("ranks_per_node", std::to_string(request.ranks_per_node));
  say("active_hosts", std::to_string(setup.active));
  say("spare_hosts", std::to_string(setup.pool.size() - setup.active));
  say("gpus_per_node", request.gpus_per_node > 0 ? std::to_string(request.gpus_per_node) : "");
  say("cpus_per_rank", request.cpus_per_rank > 0 ? std::to_string(request.cpus_per_rank) : "");
  say("cpu_bind", request.cpu_bind);
  say("hostfile", options.hostfile);
  say("auto_retry", options.auto_retry ? "yes" : "no");
  say("require_net", options.require_net.value_or(""));
  say("launcher_flags", shell_join(launch::mask_secrets(options.launcher_flags)));
  for (const auto& [name, value] : options.env) {
    const std::string shown = launch::looks_secret(name) ? "***" : value.value_or("");
    run.config.emplace_back("env " + name, shown);
  }
  run.versions.emplace_back("ezpz", std::string(kVersion));
  utsname system{};
  if (uname(&system) == 0) run.versions.emplace_back("kernel", system.release);
  run.started = iso8601(wall_s());
  return run;
}

RunRecord::RunRecord(Loop& loop, journal::Scribe& disk, const std::string& job_dir,
                     bench::RunInfo run)
    : loop_(loop),
      disk_(disk),
      path_(job_dir + "/run_info.json"),
      run_(std::move(run)),
      ranks_asked_for_(run_.world_size) {}

void RunRecord::hear(std::string_view name, const Json& context) {
  if (name == "attempt_start") {
    begin_attempt(context);
  } else if (name == "network") {
    hear_of_network(context);
  } else if (name == "swap" || name == "shrink") {
    run_.swaps.push_back({number_of(context, "attempt"), text_of(context, "out"),
                          text_of(context, "in"), text_of(context, "provenance")});
  } else if (name == "stop") {
    run_.end = text_of(context, "reason");
    run_.ended = iso8601(wall_s());
  } else if (!run_.attempts.empty() && name == "attempt_end") {
    run_.attempts.back().started = time_of(context, "started_s");
    run_.attempts.back().ended = time_of(context, "ended_s");
  } else if (!run_.attempts.empty() && name == "verdict") {
    run_.attempts.back().verdict = text_of(context, "verdict");
    run_.attempts.back().summary = text_of(context, "summary");
  } else if (!run_.attempts.empty() && name == "decision") {
    run_.attempts.back().action = text_of(context, "action");
  } else {
    return;
  }
  write();
  if (name == "attempt_start") ask_for_commit();
}

void RunRecord::begin_attempt(const Json& context) {
  bench::AttemptInfo attempt;
  attempt.attempt = number_of(context, "attempt");
  attempt.started = iso8601(wall_s());
  attempt.hosts = names_of(context, "hosts");
  const int nodes = static_cast<int>(attempt.hosts.size());
  // Fewer hosts than planned (shrunk): as many ranks a node as before.
  attempt.world_size = std::min(ranks_asked_for_, run_.ranks_per_node * nodes);
  run_.hosts = attempt.hosts;
  run_.world_size = attempt.world_size;
  run_.gpus_unknown.clear();
  run_.gpus = bench::gpus_in_use(run_.world_size, nodes, run_.ranks_per_node, run_.gpus_per_node,
                                 &run_.gpus_unknown);
  run_.network.used.clear();
  run_.attempts.push_back(std::move(attempt));
}

// That an earlier attempt fell back stays: its steps are among those that are measured.
void RunRecord::hear_of_network(const Json& context) {
  run_.network.expected = text_of(context, "expected");
  run_.network.used = names_of(context, "networks");
  if (const auto fallback = context.find("fallback"); fallback != context.end()) {
    run_.network.fallback = true;
    run_.network.fallback_to = text_of(*fallback, "network");
  }
  const std::string libraries = join(names_of(context, "versions"), ", ");
  if (libraries.empty()) return;
  const auto said = std::find_if(run_.versions.begin(), run_.versions.end(),
                                 [](const auto& each) { return each.first == "nccl"; });
  if (said == run_.versions.end()) {
    run_.versions.emplace_back("nccl", libraries);
  } else {
    said->second = libraries;
  }
}

// Beside the first attempt: it delays nothing, and the next writing has it.
void RunRecord::ask_for_commit() {
  if (commit_asked_) return;
  commit_asked_ = true;
  const Argv question = {"git",     "--no-optional-locks", "describe",   "--always",
                         "--dirty", "--abbrev=40",         "--exclude=*"};
  start_helper(loop_, question, kGitPatience_s,
               [this, alive = std::weak_ptr<int>(alive_)](const HelperResult& answer) {
                 if (alive.expired() || !answer.usable()) return;
                 run_.git_commit = printable(trim(answer.out), 80);
                 write();
               });
}

void RunRecord::write() {
  run_.updated = iso8601(wall_s());
  disk_.replace(path_, bench::to_json_text(run_));
}

}  // namespace ezpz::app
