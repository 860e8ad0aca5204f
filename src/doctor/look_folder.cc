#include "doctor/look_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "doctor/file_system.h"

namespace ezpz::doctor {
namespace {

constexpr double kLfs_s = 5;

std::string nearest_that_exists(const std::string& path) {
  std::filesystem::path folder(path);
  struct stat info {};
  while (stat(folder.c_str(), &info) != 0 && folder.has_parent_path() &&
         folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  return folder.string();
}

// Really writes: permissions, quotas and read-only mounts tell themselves only then.
bool can_write(const std::string& folder, std::string* error) {
  std::string path = folder + "/.ezpz-doctor-XXXXXX";
  const Fd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd) {
    *error = strerror(errno);
    return false;
  }
  const std::string block(4096, 'e');
  bool written = write_all(fd.get(), block) && fsync(fd.get()) == 0;
  if (!written) *error = strerror(errno);
  unlink(path.c_str());
  return written;
}

void look_at_lustre(FolderSight& sight, const AskHelper& ask) {
  const bool on_lustre = sight.file_system == "lustre";
  // Lustre may be mounted through something that shows another type (DVS); lfs knows.
  if (!on_lustre && find_program("lfs").empty()) return;
  const HelperResult space = ask(lustre_space_query(sight.existing), kLfs_s);
  // A target that does not answer makes lfs end with an error, and still tell the others.
  std::vector<LustreTarget> targets;
  if (space.started && !space.timed_out) targets = read_lustre_space(space.out);
  if (targets.empty()) {
    if (!on_lustre && !space.timed_out) return;  // it is no Lustre, and lfs says so
    sight.lustre_trouble = space.trouble.empty() ? "lfs df told nothing" : space.trouble;
    return;
  }
  sight.lustre = LustreSight{std::move(targets), std::nullopt};
  const HelperResult stripes = ask(lustre_stripes_query(sight.existing), kLfs_s);
  if (stripes.usable()) sight.lustre->stripes = read_lustre_stripes(stripes.out);
}

}  // namespace

FolderSight look_at_folder(const std::string& absolute_path, const AskHelper& ask) {
  FolderSight sight;
  sight.path = absolute_path;
  sight.existing = nearest_that_exists(absolute_path);
  struct stat info {};
  if (stat(sight.existing.c_str(), &info) != 0) {
    sight.trouble = strerror(errno);
    return sight;
  }
  sight.is_folder = S_ISDIR(info.st_mode);
  FileSystem system;
  if (!file_system_of(sight.existing, &system)) {
    sight.trouble = strerror(errno);
    return sight;
  }
  sight.file_system = system.name;
  sight.in_memory = system.in_memory;
  sight.free_bytes = system.free_bytes;
  sight.total_bytes = system.total_bytes;
  sight.free_files = system.free_files;
  sight.total_files = system.total_files;
  if (!sight.is_folder) return sight;
  sight.writable = can_write(sight.existing, &sight.write_error);
  look_at_lustre(sight, ask);
  return sight;
}

}  // namespace ezpz::doctor
