// "mpich-gtl": Cray MPICH told to take GPU buffers, in a program that is not linked with its GPU
// transport layer, ends every rank at MPI_Init with a segmentation fault (rc 139).
#include "base/text.h"
#include "doctor/command_flags.h"
#include "doctor/node_sight.h"
#include "doctor/safe_text.h"

namespace ezpz::doctor {
namespace {

constexpr const char* kCheck = "mpich-gtl";
constexpr const char* kVariable = "MPICH_GPU_SUPPORT_ENABLED";

// libmpi_gnu_123.so.12, libmpi_cray.so.12, ...; through its ABI folder Cray's is plain
// libmpi.so.12. Others do not read the variable; Open MPI's is libmpi.so.40.
bool may_be_cray(const MpiUser& user) {
  for (const std::string& name : user.mpi_libraries) {
    if (name.starts_with("libmpi.so.40") || name.starts_with("libmpicxx")) continue;
    return true;
  }
  return false;
}

}  // namespace

std::vector<Finding> check_mpich_gtl(const NodeSight& sight, const NodeContext&) {
  const auto value = site::get(sight.env, kVariable);
  if (!value || says_no(*value)) {
    return {{kCheck, Health::ok,
             std::string(kVariable) + (value ? " is off" : " is not set") +
                 ": MPI does not ask for its GPU library",
             "", ""}};
  }
  const std::string off = "export MPICH_GPU_SUPPORT_ENABLED=0 (collectives of torch go over NCCL)";
  const std::string set = shown(kVariable, *value);
  const auto unknown = [&](const std::string& why) {
    return std::vector<Finding>{{kCheck, Health::unknown,
                                 set +
                                     ", and whether the program is linked with libmpi_gtl is not "
                                     "known: " +
                                     printable(why),
                                 off, ""}};
  };
  std::optional<MpiUser> user;
  if (sight.program) user = *sight.program;
  if (!user) {
    if (!sight.python) return unknown(sight.python.why_not());
    if (!sight.python->mpi4py) return unknown(sight.python->mpi4py.why_not());
    user = *sight.python->mpi4py;
    if (!user && !sight.program) return unknown(sight.program.why_not());
  }
  if (!user) {
    return {
        {kCheck, Health::ok,
         set + ", but neither the program nor " + printable(sight.python->path, 160) + " has MPI",
         "", ""}};
  }
  const std::string path = printable(user->path, 200);
  if (user->gtl)
    return {{kCheck, Health::ok, set + ", and " + path + " is linked with libmpi_gtl", "", ""}};
  if (user->mpi_libraries.empty()) return unknown(path + " names no MPI library it needs");
  if (!may_be_cray(*user)) {
    return {{kCheck, Health::ok,
             set + " means nothing to " + printable(join(user->mpi_libraries, ", "), 160), "", ""}};
  }
  return {{kCheck, Health::error,
           set + ", but " + path + " (linked with " +
               printable(join(user->mpi_libraries, ", "), 160) +
               ") is not linked with libmpi_gtl: every rank dies in MPI_Init with a segmentation "
               "fault (GTL library is not linked)",
           off, ""}};
}

}  // namespace ezpz::doctor
