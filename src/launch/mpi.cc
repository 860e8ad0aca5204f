// What the planners of the launchers called mpiexec have in common.
#include <algorithm>

#include "base/text.h"
#include "launch/counts.h"
#include "launch/planning.h"

namespace ezpz::launch {
namespace {

// Numbers of an outer launcher (a batch shell started by one, an ezpz inside a rank). `ezpz rank`
// would believe them, and Open MPI takes itself for a child of the job they name.
constexpr const char* outer_ranks[] = {"MPI_LOCALNRANKS",
                                       "MPI_LOCALRANKID",
                                       "OMPI_COMM_WORLD_RANK",
                                       "OMPI_COMM_WORLD_SIZE",
                                       "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "OMPI_COMM_WORLD_LOCAL_SIZE",
                                       "PALS_LOCAL_RANKID",
                                       "PALS_LOCAL_SIZE",
                                       "PALS_NODEID",
                                       "PALS_RANKID",
                                       "PMIX_NAMESPACE",
                                       "PMIX_RANK",
                                       "PMIX_SERVER_URI2",
                                       "PMIX_SERVER_URI21",
                                       "PMIX_SERVER_URI3",
                                       "PMIX_SERVER_URI4",
                                       "PMIX_SERVER_URI41",
                                       "PMI_FD",
                                       "PMI_LOCAL_RANK",
                                       "PMI_LOCAL_SIZE",
                                       "PMI_PORT",
                                       "PMI_RANK",
                                       "PMI_SIZE"};

// {2,2,1} -> "2(x2),1": the form of SLURM_TASKS_PER_NODE.
std::string counts_text(const std::vector<int>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size();) {
    size_t same = i;
    while (same < counts.size() && counts[same] == counts[i]) ++same;
    text += (text.empty() ? "" : ",") + std::to_string(counts[i]);
    if (same - i > 1) text += "(x" + std::to_string(same - i) + ")";
    i = same;
  }
  return text;
}

}  // namespace

bool is_even(const Request& request) {
  return request.ranks == request.ranks_per_node * static_cast<int>(request.hosts.size());
}

std::vector<int> filled_hosts(const Request& request) {
  std::vector<int> counts;
  int left = request.ranks;
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    counts.push_back(std::min(left, request.ranks_per_node));
    left -= counts.back();
  }
  return counts;
}

Plan start_mpi_plan(const std::string& launcher, const Request& request,
                    const std::vector<int>& counts) {
  Plan plan = start_plan(launcher, request, request.hosts);
  plan.host_of_rank.clear();
  int rank = 0;
  for (size_t host = 0; host < counts.size(); ++host) {
    for (int i = 0; i < counts[host]; ++i) plan.host_of_rank[rank++] = plan.host_order[host];
  }
  plan.env["EZPZ_MASTER_ADDR"] = plan.master_addr;
  plan.env["EZPZ_RANKS_PER_NODE"] = counts_text(counts);
  EnvChanges outer;
  for (const char* name : outer_ranks) outer[name] = std::nullopt;
  plan.env.merge(outer);  // what the user set on purpose stays
  return plan;
}

void add_mpi_command(Plan& plan, const Request& request) {
  plan.argv.insert(plan.argv.end(), request.launcher_flags.begin(), request.launcher_flags.end());
  if (request.rank_env) {
    plan.argv.insert(plan.argv.end(), {request.self_path, "rank", "--"});
  }
  plan.argv.insert(plan.argv.end(), request.command.begin(), request.command.end());
}

std::set<std::string> mpi_flags_in(const Argv& user_flags) {
  std::set<std::string> found;
  for (const std::string& word : user_flags) {
    const size_t start = word.find_first_not_of('-');
    if (start == 0 || start == std::string::npos) continue;
    std::string name = word.substr(start, word.find('=') - start);
    const bool number_behind =
        name.size() > 1 && name.find_first_not_of("0123456789", 1) == std::string::npos;
    if (start == 1 && number_behind) name.resize(1);
    found.insert(name);
  }
  return found;
}

bool gave_any(const std::set<std::string>& given, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return given.count(name) != 0; });
}

std::optional<Error> refuse_host_flags(const std::set<std::string>& given,
                                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (given.count(name) == 0) continue;
    return Error{"ezpz chooses the hosts, so the launcher's own flag would undo a swap",
                 (name.size() == 1 ? "-" : "--") + name, "give the hosts with --hostfile"};
  }
  return std::nullopt;
}

std::vector<std::string> names_for_ranks(const Plan& plan, const Request& request) {
  std::set<std::string> names(request.inherited.begin(), request.inherited.end());
  for (const auto& [name, value] : plan.env) {
    if (value) {
      names.insert(name);
    } else {
      names.erase(name);
    }
  }
  return {names.begin(), names.end()};
}

Result<Argv> beside_argv(Result<Plan> (*plan_of)(const Request&), const Request& request,
                         const std::vector<Node>& hosts, const Argv& command) {
  Request beside = request;
  beside.hosts = hosts;
  beside.ranks = static_cast<int>(hosts.size());
  beside.ranks_per_node = 1;
  beside.command = command;
  beside.hostfile_path.clear();
  beside.rank_env = false;
  beside.label = false;
  beside.cpu_bind.clear();
  beside.kill_on_bad_exit = false;  // what one host answers must not end the others
  beside.user_env.clear();
  beside.attempt_id.clear();  // it must not be taken for a part of the attempt
  beside.master_port = 0;
  const Result<Plan> plan = plan_of(beside);
  if (!plan) return plan.error();
  Argv argv{"env"};
  // What is set anew goes to the end, as where ezpz itself starts the launcher.
  for (const auto& [name, value] : plan->env) argv.insert(argv.end(), {"-u", name});
  for (const auto& [name, value] : plan->env) {
    if (value) argv.push_back(name + "=" + *value);
  }
  argv.insert(argv.end(), plan->argv.begin(), plan->argv.end());
  return argv;
}

}  // namespace ezpz::launch
