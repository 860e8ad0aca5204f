// Where the record goes: can it be written, is there room, and what does Lustre hide?
#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/check_job.h"
#include "doctor/text_of_hosts.h"

namespace ezpz::doctor {
namespace {

constexpr double kMiB = 1024.0 * 1024;
constexpr double kGiB = 1024 * kMiB;
constexpr double kNoRoom_bytes = 16 * kMiB;
constexpr double kLittleRoom_bytes = kGiB;
constexpr double kNoFiles = 20;  // a job's record is some ten files
constexpr double kFewFiles = 1000;
constexpr double kFull = 0.99;
constexpr double kNearlyFull = 0.90;

constexpr const char* kIncident8 =
    "docs/doctor.md#lustre: a full target of four ended checkpoints while df showed 10 %";

std::string size_text(double bytes) {
  if (bytes >= 1024 * kGiB) return fmt::format("{:.1f} TiB", bytes / kGiB / 1024);
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", bytes / kGiB);
  return fmt::format("{:.0f} MiB", bytes / kMiB);
}

std::string names_of(const std::vector<LustreTarget>& targets) {
  std::vector<std::string> names;
  names.reserve(targets.size());
  for (const LustreTarget& target : targets) names.push_back(target.name);
  return text_of_hosts(names);
}

}  // namespace

Findings check_log_dir(const JobSight& sight) {
  constexpr const char* kName = "log-dir";
  const FolderSight& folder = sight.log_dir;
  const std::string path = printable(folder.path, 300);
  const std::string elsewhere = "choose another with --log-dir";
  if (!folder.trouble.empty()) {
    return {{kName, Health::unknown, path + " could not be looked at: " + printable(folder.trouble),
             elsewhere + " if its file system hangs", ""}};
  }
  const std::string where = folder.existing == folder.path
                                ? path
                                : path + " (below " + printable(folder.existing, 300) + ")";
  if (!folder.is_folder) {
    return {{kName, Health::error, printable(folder.existing, 300) + " is not a folder", elsewhere,
             ""}};
  }
  if (!folder.writable) {
    return {{kName, Health::error, where + " cannot be written: " + printable(folder.write_error),
             elsewhere + ", or make room: without it there is no record and no attempt's output",
             ""}};
  }
  const bool counts_files = folder.total_files > 0;
  if (folder.free_bytes < kNoRoom_bytes || (counts_files && folder.free_files < kNoFiles)) {
    return {{kName, Health::error,
             fmt::format("{} is full: {}{} left", where, size_text(folder.free_bytes),
                         counts_files ? fmt::format(" and {:.0f} files", folder.free_files) : ""),
             elsewhere + ", or make room there", ""}};
  }
  if (folder.free_bytes < kLittleRoom_bytes || (counts_files && folder.free_files < kFewFiles)) {
    return {{kName, Health::warning,
             fmt::format("{} is nearly full: {}{} left", where, size_text(folder.free_bytes),
                         counts_files ? fmt::format(" and {:.0f} files", folder.free_files) : ""),
             elsewhere + ", or make room there", ""}};
  }
  if (folder.in_memory && sight.launch.pool.size() > 1) {
    return {{kName, Health::warning,
             where + " lies in this host's memory (" + folder.file_system +
                 "): the record is gone with the host, when it is needed",
             elsewhere + ", on a file system that outlives the job", ""}};
  }
  return {{kName, Health::ok,
           fmt::format("{}: writable, {} of {} free{}", where, size_text(folder.free_bytes),
                       size_text(folder.total_bytes),
                       folder.file_system.empty() ? "" : " (" + folder.file_system + ")"),
           "", ""}};
}

Findings check_lustre(const JobSight& sight) {
  constexpr const char* kName = "lustre";
  const FolderSight& folder = sight.log_dir;
  const std::string path = printable(folder.existing, 300);
  if (!folder.lustre) {
    if (folder.lustre_trouble.empty()) return {};
    return {{kName, Health::unknown,
             path + " lies on Lustre, but its targets could not be asked for: " +
                 printable(folder.lustre_trouble, 200),
             "look by hand: lfs df " + path, ""}};
  }
  const LustreSight& lustre = *folder.lustre;
  std::vector<LustreTarget> full;
  std::vector<LustreTarget> filling;
  std::vector<LustreTarget> silent;
  size_t count = 0;
  double free_bytes = 0;
  double total_bytes = 0;
  for (const LustreTarget& target : lustre.targets) {
    if (target.is_ost) {
      ++count;
      free_bytes += target.free_bytes;
      total_bytes += target.total_bytes;
    }
    if (!target.active) {
      silent.push_back(target);
    } else if (target.total_bytes > 0 && target.used_share() >= kFull) {
      full.push_back(target);
    } else if (target.total_bytes > 0 && target.used_share() >= kNearlyFull) {
      filling.push_back(target);
    }
  }
  if (count == 0) {
    return {{kName, Health::unknown, "lfs df names no storage target of " + path,
             "look by hand: lfs df " + path, ""}};
  }
  const double used = total_bytes > 0 ? 100 * (1 - free_bytes / total_bytes) : 0;
  std::string layout;
  if (lustre.stripes) {
    const LustreStripes& stripes = *lustre.stripes;
    layout = stripes.count == -1 ? "; a file there lies on all of them"
             : stripes.count > 1 ? fmt::format("; a file there lies on {}", stripes.count)
                                 : "; a file there lies on one";
    if (stripes.offset >= 0) layout += fmt::format(", from OST {} on", stripes.offset);
    if (!stripes.pool.empty()) layout += " of pool " + printable(stripes.pool, 64);
  }
  const std::string avoid =
      "lfs setstripe a new folder onto other targets (lfs setstripe -c 1 -i "
      "INDEX), or write elsewhere; tell the site";
  const auto of_all = [&](const std::vector<LustreTarget>& some) {
    return fmt::format("{} ({} of {})", names_of(some), some.size(), lustre.targets.size());
  };
  if (!full.empty()) {
    // A new file is put on a target that has room, unless its layout leaves no choice.
    const bool no_choice =
        !lustre.stripes || lustre.stripes->count == -1 ||
        std::any_of(full.begin(), full.end(), [&](const LustreTarget& target) {
          return !target.is_ost || (target.index >= 0 && target.index == lustre.stripes->offset);
        });
    return {{kName, no_choice ? Health::error : Health::warning,
             fmt::format("full targets below {}: {}, though the whole is {:.0f} % used{}", path,
                         of_all(full), used, layout),
             avoid, kIncident8}};
  }
  if (!silent.empty()) {
    return {{kName, Health::warning,
             fmt::format("targets that do not answer below {}: {}: files that lie on them hang{}",
                         path, of_all(silent), layout),
             avoid, ""}};
  }
  if (!filling.empty()) {
    return {{kName, Health::warning,
             fmt::format("nearly full targets below {}: {}, the whole is {:.0f} % used{}", path,
                         of_all(filling), used, layout),
             avoid, kIncident8}};
  }
  return {{kName, Health::ok,
           fmt::format("{} below {}, none nearly full, {:.0f} % used{}",
                       count_of(count, "storage target"), path, used, layout),
           "", ""}};
}

}  // namespace ezpz::doctor
