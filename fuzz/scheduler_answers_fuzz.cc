// What scontrol, squeue and a node's check print, and a user's hostfile: any bytes may come back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "probe/node_check.h"
#include "site/hostfile.h"
#include "site/slurm.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ezpz;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      (void)site::slurm::read_job(text);
      break;
    case 1:
      (void)site::slurm::read_nodes(text);
      break;
    case 2:
      (void)site::slurm::read_steps(text);
      break;
    case 3:
      (void)site::slurm::read_my_jobs(text);
      break;
    case 4:
      (void)site::slurm::expand_counts(text);
      break;
    case 5:
      (void)site::slurm::read_cluster(text);
      break;
    case 6:
      (void)probe::parse_report(text);
      break;
    default:
      (void)site::parse_hostfile(text, "hostfile", {});
      break;
  }
  return 0;
}
