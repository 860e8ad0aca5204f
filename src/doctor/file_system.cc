#include "doctor/file_system.h"

#include <fmt/core.h>
#include <sys/statfs.h>

#include <cerrno>

namespace ezpz::doctor {
namespace {

struct Kind {
  unsigned long magic;
  const char* name;
  bool in_memory;
};
// Numbers of linux/magic.h and of the file systems' own sources.
constexpr Kind kinds[] = {
    {0x01021994, "tmpfs", true},   {0x858458f6, "ramfs", true},     {0x0bd00bd0, "lustre", false},
    {0x6969, "nfs", false},        {0xef53, "ext4", false},         {0x58465342, "xfs", false},
    {0x9123683e, "btrfs", false},  {0x794c7630, "overlay", false},  {0x47504653, "gpfs", false},
    {0x2fc12fc1, "zfs", false},    {0x00c36400, "ceph", false},     {0x65735546, "fuse", false},
    {0x19830326, "beegfs", false}, {0xff534d42, "cifs", false},     {0x01021997, "9p", false},
    {0xaad7aaea, "panfs", false},  {0x7461636f, "ocfs2", false},    {0x01161970, "gfs2", false},
    {0x7c7c6673, "dvs", false},    {0x6a656a63, "virtiofs", false},
};

}  // namespace

bool file_system_of(const std::string& path, FileSystem* found) {
  struct statfs info {};
  int rc = 0;
  do {
    rc = statfs(path.c_str(), &info);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return false;
  const auto magic = static_cast<unsigned long>(info.f_type) & 0xffffffffUL;
  found->name = fmt::format("{:#x}", magic);
  for (const Kind& kind : kinds) {
    if (kind.magic != magic) continue;
    found->name = kind.name;
    found->in_memory = kind.in_memory;
  }
  const double block = static_cast<double>(info.f_frsize > 0 ? info.f_frsize : info.f_bsize);
  found->free_bytes = static_cast<double>(info.f_bavail) * block;
  found->total_bytes = static_cast<double>(info.f_blocks) * block;
  found->free_files = static_cast<double>(info.f_ffree);
  found->total_files = static_cast<double>(info.f_files);
  return true;
}

}  // namespace ezpz::doctor
