// `ezpz info`: what ezpz sees here, and why it concluded it.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/site_view.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/hostlist.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/mpi_program.h"

namespace ezpz::app {
namespace {

// One answer: what, its value, and why.
struct Row {
  std::string name;
  Json value;
  std::string why;
};

// Every mpiexec in PATH: {path, kind, launcher}, the launcher null where none of ours starts it.
Row mpiexec_row(const std::vector<launch::InstalledMpi>& programs) {
  Json list = Json::array();
  std::vector<std::string> why;
  for (const launch::InstalledMpi& found : programs) {
    const bool ours = found.launcher != nullptr;
    list.push_back({{"path", found.program.path},
                    {"kind", std::string(to_string(found.program.kind))},
                    {"launcher", ours ? Json(std::string(found.launcher->name)) : Json(nullptr)}});
    why.push_back(found.answer);
  }
  return {"mpiexec", list,
          programs.empty() ? "none in PATH" : join(why, "; ") + ", by its own --version"};
}

std::vector<Row> rows_of(const SiteView& view, const std::vector<launch::InstalledMpi>& programs) {
  const site::Machine& machine = view.machine.machine;
  const site::Discovery& job = view.job;
  const auto why = [&job](const char* field) {
    const auto found = job.why.find(field);
    return found != job.why.end() ? found->second : std::string();
  };
  const auto known = [](bool is_known, const Json& value) {
    return is_known ? value : Json(nullptr);
  };
  std::vector<Row> rows{
      {"machine", machine.name, view.machine.why},
      {"hostname", view.hostname, "gethostname"},
      {"fqdn", known(!view.fqdn.empty(), view.fqdn), "getent hosts"},
      {"scheduler", std::string(to_string(job.scheduler)), why("scheduler")},
      {"cluster", known(!job.cluster.empty(), job.cluster), why("cluster")},
      {"job_id", known(job.in_job(), job.job_id), job.in_job() ? why("job_id") : "not in a job"},
      {"job_state", job.job_state ? Json(*job.job_state) : Json(nullptr), why("job_state")},
      {"hosts", job.hosts, why("hosts")},
      {"unfit_hosts", known(job.why.count("unfit_hosts") > 0, Json(job.unfit_hosts)),
       why("unfit_hosts")},
      {"node_file", known(!job.node_file.empty(), job.node_file), why("node_file")},
      {"end_time", job.end_time_s ? Json(iso8601(*job.end_time_s)) : Json(nullptr),
       why("end_time_s")},
      {"time_left_s",
       job.end_time_s ? Json(static_cast<long>(*job.time_left_s(wall_s()))) : Json(nullptr),
       why("end_time_s")},
      {"no_kill", job.no_kill ? Json(*job.no_kill) : Json(nullptr), why("no_kill")},
      {"heterogeneous", job.heterogeneous, why("heterogeneous")},
      {"running_jobs", job.running_jobs, why("running_jobs")},
      {"cpus_per_node", known(job.cpus_per_node > 0, job.cpus_per_node), why("cpus_per_node")},
      {"gpus_per_node", known(job.gpus_per_node > 0, job.gpus_per_node), why("gpus_per_node")},
      {"machine_gpus_per_node", known(machine.gpus_per_node > 0, machine.gpus_per_node),
       "the machine's table"},
      {"machine_launcher", known(!machine.launcher.empty(), machine.launcher),
       "the machine's table"},
      mpiexec_row(programs),
      {"ssh_client", known(!find_program("ssh").empty(), find_program("ssh")), "PATH"},
      {"network_expected", known(!machine.network.empty(), machine.network), "the machine's table"},
  };
  return rows;
}

std::string programs_text(const Json& programs) {
  std::vector<std::string> words;
  for (const Json& program : programs) {
    const Json& launcher = program["launcher"];
    words.push_back(program["path"].get<std::string>() +
                    (launcher.is_null() ? " (for no launcher)"
                                        : " (--launcher " + launcher.get<std::string>() + ")"));
  }
  return join(words, ", ");
}

std::string value_text(const Json& value) {
  if (value.is_null()) return "unknown";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    if (value.empty()) return "unknown";
    if (value[0].is_object()) return programs_text(value);
    return compress_hostlist(value.get<std::vector<std::string>>());
  }
  if (value.is_object()) {
    std::vector<std::string> pairs;
    for (const auto& [name, state] : value.items()) {
      pairs.push_back(name + " (" + state.get<std::string>() + ")");
    }
    return pairs.empty() ? "none" : join(pairs, ", ");
  }
  return dump(value);
}

}  // namespace

int run_info(const Words& words) {
  bool as_json = false;
  std::string machine;
  std::string machines_dir;
  FlagTable table(
      "ezpz info [--json]",
      "Shows the machine, scheduler, job and hosts ezpz sees here, each with the reason. "
      "What could not be asked is unknown and says so.");
  table.add_switch({"--json"}, "For programs.", &as_json);
  table.add_string({"--machine"}, "NAME", "Take this machine's table.", &machine);
  table.add_string({"--machines-dir"}, "DIR", "Machine tables that replace or add to the built-in.",
                   &machines_dir);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> rest = table.parse(words);
  if (!rest) return usage_error(rest.error().one_line());
  if (!rest->empty()) return usage_error("info takes no arguments: " + rest->at(0));
  Loop loop;
  const Result<SiteView> view = look_around(loop, machine, machines_dir, site::Depth::everything);
  if (!view) return usage_error(view.error().one_line());

  std::vector<std::string> trouble = view->job.trouble;
  trouble.insert(trouble.end(), view->trouble.begin(), view->trouble.end());
  const launch::MpiSearch search = launch::search_here(
      [&loop](const Argv& argv, double timeout_s) { return run_helper(loop, argv, timeout_s); });
  const std::vector<Row> rows = rows_of(*view, launch::installed_programs(search));
  if (as_json) {
    Json json = Json::object();
    Json why = Json::object();
    for (const Row& row : rows) {
      json[row.name] = row.value;
      if (!row.why.empty()) why[row.name] = row.why;
    }
    json["why"] = why;
    json["trouble"] = trouble;
    write_all(1, dump_pretty(json) + "\n");
    return 0;
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<22} {}", row.name, printable(value_text(row.value), 2000));
    if (!row.why.empty()) text += "   (" + printable(row.why) + ")";
    text += '\n';
  }
  for (const std::string& line : trouble) text += "not answered: " + printable(line) + "\n";
  write_all(1, text);
  return 0;
}

}  // namespace ezpz::app
