#include "rank/rank_env.h"

#include <optional>
#include <vector>

#include "base/hostlist.h"
#include "base/text.h"
#include "site/slurm.h"

namespace ezpz::rank {
namespace {

// Where one launcher leaves its numbers; the first variable of a list that is set counts.
struct Source {
  const char* launcher;
  std::vector<const char*> rank;
  std::vector<const char*> size;
  std::vector<const char*> local_rank;
  std::vector<const char*> local_size;
  std::vector<const char*> node;
};

// In order of trust. SLURM is last: its batch shell, from which the others may have been started,
// carries SLURM_PROCID=0 to every rank.
const std::vector<Source>& sources() {
  static const std::vector<Source> table = {
      {"PALS",
       {"PALS_RANKID"},
       {"PMI_SIZE"},
       {"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"},
       {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
       {"PALS_NODEID"}},
      {"PMI",
       {"PMI_RANK"},
       {"PMI_SIZE"},
       {"PMI_LOCAL_RANK", "MPI_LOCALRANKID"},
       {"PMI_LOCAL_SIZE", "MPI_LOCALNRANKS"},
       {}},
      {"Open MPI",
       {"OMPI_COMM_WORLD_RANK"},
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       {}},  // OMPI_COMM_WORLD_NODE_RANK counts processes on a node, not nodes
      {"SLURM",
       {"SLURM_PROCID"},
       {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
       {"SLURM_LOCALID"},
       {},
       {"SLURM_NODEID"}},
  };
  return table;
}

constexpr const char* tasks_per_node_variables[] = {"SLURM_STEP_TASKS_PER_NODE",
                                                    "SLURM_TASKS_PER_NODE"};

class Mapper {
 public:
  Mapper(const site::Environment& env, const std::string& hostname)
      : env_(env), hostname_(hostname) {}

  Result<EnvChanges> map() {
    const Source* source = find_source();
    if (source == nullptr) {
      return Error{"this process has no rank", "none of " + rank_variables() + " is set",
                   "`ezpz rank` is started by `ezpz launch`; use --no-rank-env to do without"};
    }
    const std::optional<long> rank = number(source->rank);
    std::optional<long> size = number(source->size);
    std::optional<long> local_rank = number(source->local_rank);
    const std::optional<long> node = number(source->node);
    if (bad_) return *bad_;
    read_layout(*rank);
    if (!size) size = layout_size_;
    if (size && *rank >= *size) {
      return Error{"rank " + std::to_string(*rank) + " of only " + std::to_string(*size),
                   source->launcher, "variables of an outer launcher may have leaked in"};
    }
    // A SLURM step whose MPI plugin speaks PMI has both sets of variables, and they agree.
    const bool in_step = number({"SLURM_PROCID"}) == rank && site::get(env_, "SLURM_STEP_NODELIST");
    std::optional<long> local_size = number(source->local_size);
    if (!local_size && in_step) local_size = step_tasks_here();
    if (!local_size) local_size = layout_local_size_;
    if (!local_rank && !in_step) local_rank = layout_local_rank_;

    set("RANK", rank);
    set("WORLD_SIZE", size);
    set("LOCAL_RANK", local_rank ? local_rank : in_step ? number({"SLURM_LOCALID"}) : std::nullopt);
    set("LOCAL_WORLD_SIZE", local_size);
    set("NODE_RANK", node ? node : node_rank(in_step, *rank, local_size));
    set_master(in_step);
    const auto slurm_name = site::get(env_, "SLURMD_NODENAME");
    const std::string name = in_step && slurm_name ? *slurm_name : hostname_;
    if (!name.empty()) changes_["EZPZ_NODE"] = name;
    if (bad_) return *bad_;
    return changes_;
  }

 private:
  const Source* find_source() const {
    for (const Source& source : sources()) {
      for (const char* name : source.rank) {
        if (site::get(env_, name)) return &source;
      }
    }
    return nullptr;
  }

  static std::string rank_variables() {
    std::vector<std::string> names;
    for (const Source& source : sources()) {
      names.insert(names.end(), source.rank.begin(), source.rank.end());
    }
    return join(names, ", ");
  }

  std::optional<long> number(const std::vector<const char*>& names) {
    for (const char* name : names) {
      const auto text = site::get(env_, name);
      if (!text) continue;
      const auto value = parse_int(*text);
      if (value && *value >= 0) return value;
      if (!bad_) {
        bad_ = Error{"not a number: '" + printable(*text, 40) + "'", name,
                     "the launcher's variables are damaged"};
      }
      return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<long> step_tasks_here() {
    const auto node = number({"SLURM_NODEID"});
    if (!node) return std::nullopt;
    for (const char* name : tasks_per_node_variables) {
      const auto text = site::get(env_, name);
      const auto counts = text ? site::slurm::expand_counts(*text) : std::nullopt;
      if (counts && static_cast<size_t>(*node) < counts->size()) {
        return (*counts)[static_cast<size_t>(*node)];
      }
    }
    return std::nullopt;
  }

  // Where the launcher does not say it: as planned, else in blocks of equal size.
  std::optional<long> node_rank(bool in_step, long rank, std::optional<long> local_size) {
    if (in_step) {
      if (const auto node = number({"SLURM_NODEID"})) return node;
    }
    if (layout_node_) return layout_node_;
    if (!local_size || *local_size < 1) return std::nullopt;
    return rank / *local_size;
  }

  // What ezpz planned, for what an mpiexec does not say: "2(x3),1" ranks on each host in order.
  void read_layout(long rank) {
    const auto text = site::get(env_, "EZPZ_RANKS_PER_NODE");
    const auto counts = text ? site::slurm::expand_counts(*text) : std::nullopt;
    if (!counts) return;
    long first = 0;
    for (size_t node = 0; node < counts->size(); ++node) {
      const long here = (*counts)[node];
      if (rank >= first && rank < first + here) {
        layout_node_ = static_cast<long>(node);
        layout_local_rank_ = rank - first;
        layout_local_size_ = here;
      }
      first += here;
    }
    layout_size_ = first;
  }

  void set_master(bool in_step) {
    if (const auto given = site::get(env_, "EZPZ_MASTER_ADDR")) {
      changes_["MASTER_ADDR"] = *given;
    } else if (in_step) {
      // Not what the batch script may have exported: after a swap rank 0 can sit elsewhere.
      const auto hosts = expand_hostlist(env_.at("SLURM_STEP_NODELIST"));
      if (hosts.ok() && !hosts->empty()) changes_["MASTER_ADDR"] = hosts->front();
    }
    if (const auto port = site::get(env_, "EZPZ_MASTER_PORT")) changes_["MASTER_PORT"] = *port;
  }

  void set(const char* name, std::optional<long> value) {
    if (value) changes_[name] = std::to_string(*value);
  }

  const site::Environment& env_;
  const std::string& hostname_;
  EnvChanges changes_;
  std::optional<Error> bad_;
  std::optional<long> layout_size_;
  std::optional<long> layout_node_;
  std::optional<long> layout_local_rank_;
  std::optional<long> layout_local_size_;
};

}  // namespace

Result<EnvChanges> map_rank_env(const site::Environment& env, const std::string& hostname) {
  return Mapper(env, hostname).map();
}

}  // namespace ezpz::rank
