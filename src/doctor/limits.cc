// "shm", "tmp", "locked-memory", "open-files", "processes", "stack", "core-dumps", "memory",
// "memory-limit". A threshold is a row with its reason; the reason is what the finding says.
#include <fmt/core.h>

#include "base/text.h"
#include "doctor/node_sight.h"
#include "doctor/safe_text.h"

namespace ezpz::doctor {
namespace {

constexpr uint64_t kKiB = 1ULL << 10U;
constexpr uint64_t kMiB = 1ULL << 20U;
constexpr uint64_t kGiB = 1ULL << 30U;

struct Threshold {
  const char* check;
  const char* what;
  uint64_t warning_below;
  uint64_t error_below;
  const char* reason;
  const char* remedy;
};

constexpr Threshold kShm = {
    "shm",
    "/dev/shm",
    1 * kGiB,
    32 * kMiB,
    "data loaders pass batches through it and NCCL its buffers within a node: 'bus error', 'unable "
    "to allocate shared memory'",
    "remove old files from /dev/shm; in a container: --shm-size=16g, or --ipc=host"};
constexpr Threshold kTmp = {"tmp",
                            "",
                            1 * kGiB,
                            16 * kMiB,
                            "compile caches, sockets and temporary files of every rank go there",
                            "export TMPDIR=/some/other/folder, or remove old files"};
constexpr Threshold kMemory = {
    "memory",
    "free memory",
    4 * kGiB,
    256 * kMiB,
    "ranks, their data loaders and the page cache share it; what is missing ends in the kernel's "
    "OOM killer",
    "see who holds it (ps aux --sort=-rss), or ask for another node"};
constexpr Threshold kMemoryLimit = {
    "memory-limit",
    "memory left under the job's limit",
    4 * kGiB,
    256 * kMiB,
    "beyond it the kernel kills a rank of the job, whatever the node has free",
    "ask for the whole node's memory (SLURM: --mem=0)"};
constexpr Threshold kOpenFiles = {
    "open-files",
    "open files",
    4096,
    128,
    "each rank holds sockets to its peers, shared-memory files and those of its data loaders: 'too "
    "many open files'",
    "ulimit -n "};
constexpr Threshold kProcesses = {
    "processes",
    "processes and threads",
    4096,
    256,
    "every rank starts dozens of threads, and each data loader more: 'resource temporarily "
    "unavailable'",
    "ulimit -u unlimited, or ask the site"};
constexpr Threshold kStack = {
    "stack",
    "stack",
    8 * kMiB,
    512 * kKiB,
    "below the usual 8 MiB deep recursion (autograd, Python) ends in a segmentation fault",
    "ulimit -s 8192"};
// RDMA registers memory by locking it; without RDMA nobody needs more than a little.
constexpr Threshold kLocked = {
    "locked-memory",
    "locked memory",
    1 * kGiB,
    0,
    "network libraries lock what they register: 'cannot allocate memory' from libfabric or verbs",
    "ulimit -l unlimited, or ask the site to raise memlock"};

Health judge(const Threshold& threshold, uint64_t amount) {
  if (amount < threshold.error_below) return Health::error;
  return amount < threshold.warning_below ? Health::warning : Health::ok;
}

Finding unseen(const char* check, const std::string& what, const std::string& why) {
  return {check, Health::unknown, what + " could not be seen: " + printable(why),
          "look by hand: ulimit -a, df -h /dev/shm /tmp, free -g", ""};
}

// figures: "24.0 GiB free of 24.0 GiB"
Finding judged(const Threshold& threshold, uint64_t amount, const std::string& figures,
               const std::string& remedy) {
  const Health health = judge(threshold, amount);
  if (health == Health::ok) return {threshold.check, health, figures, "", ""};
  return {threshold.check, health, figures + ": " + threshold.reason, remedy, ""};
}

Finding space(const Threshold& threshold, const std::string& what, const Seen<Space>& seen) {
  if (!seen) return unseen(threshold.check, what, seen.why_not());
  return judged(
      threshold, seen->free,
      fmt::format("{} has {} free of {}", what, human_bytes(seen->free), human_bytes(seen->total)),
      threshold.remedy);
}

std::string amount_text(uint64_t amount, bool bytes) {
  if (amount == kUnlimited) return "unlimited";
  return bytes ? human_bytes(amount) : std::to_string(amount);
}

Finding limit(const Threshold& threshold, const Seen<uint64_t>& seen, bool bytes,
              const std::string& remedy) {
  if (!seen) return unseen(threshold.check, threshold.what, seen.why_not());
  return judged(threshold, *seen, fmt::format("{}: {}", threshold.what, amount_text(*seen, bytes)),
                remedy);
}

Finding open_files(const Limits& limits) {
  std::string remedy = "ask the site to raise nofile";
  if (limits.open_files_hard && *limits.open_files_hard >= kOpenFiles.warning_below) {
    remedy = kOpenFiles.remedy + (*limits.open_files_hard == kUnlimited
                                      ? std::string("65536")
                                      : std::to_string(*limits.open_files_hard));
  }
  return limit(kOpenFiles, limits.open_files, false, remedy);
}

Finding locked_memory(const Limits& limits, const site::Machine& machine) {
  const bool rdma = !machine.network.empty() || machine.launcher == "pals";
  if (!rdma && limits.locked_memory) {
    return {kLocked.check, Health::ok,
            "locked memory: " + amount_text(*limits.locked_memory, true) +
                " (this machine's table names no network that would need more)",
            "", ""};
  }
  return limit(kLocked, limits.locked_memory, true, kLocked.remedy);
}

// A core of a rank is as large as its memory, and a crash may write one for every rank at once.
Finding core_dumps(const Limits& limits) {
  const char* check = "core-dumps";
  if (!limits.core_size) return unseen(check, "the size of core files", limits.core_size.why_not());
  const std::string size = amount_text(*limits.core_size, true);
  if (*limits.core_size == 0) return {check, Health::ok, "no core files are written", "", ""};
  if (!limits.core_pattern) {
    return unseen(check, "where core files go", limits.core_pattern.why_not());
  }
  const std::string& pattern = *limits.core_pattern;
  const std::string where =
      "core files (at most " + size + ") go to '" + printable(pattern, 80) + "'";
  if (pattern.starts_with('|')) return {check, Health::ok, where + ", a program", "", ""};
  if (pattern.starts_with('/')) return {check, Health::ok, where, "", ""};
  if (!limits.working_folder) {
    return {check, Health::unknown,
            where + " in the working folder, which could not be seen: " +
                printable(limits.working_folder.why_not()),
            "ulimit -c 0", ""};
  }
  if (*limits.core_size >= kGiB && limits.working_folder->shared) {
    return {check, Health::warning,
            where +
                " in the working folder, on a file system of all nodes: a crash writes the memory "
                "of every rank there before it ends",
            "ulimit -c 0", ""};
  }
  return {check, Health::ok, where + " in the working folder", "", ""};
}

Finding memory(const Limits& limits) {
  if (!limits.memory_available) {
    return unseen(kMemory.check, kMemory.what, limits.memory_available.why_not());
  }
  const uint64_t total = limits.memory_total ? *limits.memory_total : 0;
  std::string figures = human_bytes(*limits.memory_available) + " of memory available";
  if (total > 0) figures += " of " + human_bytes(total);
  if (limits.swap_total && limits.swap_free && *limits.swap_total > 0) {
    const uint64_t used = *limits.swap_total - std::min(*limits.swap_free, *limits.swap_total);
    figures +=
        fmt::format(", {} of {} swap used", human_bytes(used), human_bytes(*limits.swap_total));
  }
  // A large node whose memory is mostly taken before the job starts is not the job's alone.
  Finding finding = judged(kMemory, *limits.memory_available, figures, kMemory.remedy);
  if (finding.health == Health::ok && total >= 64 * kGiB && *limits.memory_available < total / 4) {
    return {kMemory.check, Health::warning,
            figures + ": most of the node's memory is taken before the job starts", kMemory.remedy,
            ""};
  }
  return finding;
}

Finding memory_limit(const Limits& limits, const NodeContext& context) {
  if (!limits.cgroup_memory) {
    return unseen(kMemoryLimit.check, "the job's memory limit", limits.cgroup_memory.why_not());
  }
  const uint64_t most = *limits.cgroup_memory;
  if (most == kUnlimited || (limits.memory_total && most >= *limits.memory_total)) {
    return {kMemoryLimit.check, Health::ok, "no memory limit below the node's memory", "", ""};
  }
  const uint64_t used = limits.cgroup_memory_used ? *limits.cgroup_memory_used : 0;
  const std::string figures =
      fmt::format("the job may use {} of memory ({} used)", human_bytes(most),
                  limits.cgroup_memory_used ? human_bytes(used) : std::string("unknown"));
  Finding finding = judged(kMemoryLimit, most - std::min(used, most), figures, kMemoryLimit.remedy);
  if (finding.health == Health::ok && context.in_job && limits.memory_total &&
      most < *limits.memory_total / 2) {
    return {kMemoryLimit.check, Health::warning,
            figures + " of the node's " + human_bytes(*limits.memory_total) + ": " +
                kMemoryLimit.reason,
            kMemoryLimit.remedy, ""};
  }
  return finding;
}

}  // namespace

std::vector<Finding> check_limits(const NodeSight& sight, const NodeContext& context) {
  const Limits& limits = sight.limits;
  return {
      space(kShm, kShm.what, limits.shm),
      space(kTmp, printable(limits.tmp_path.empty() ? "/tmp" : limits.tmp_path, 120), limits.tmp),
      locked_memory(limits, context.machine),
      open_files(limits),
      limit(kProcesses, limits.processes, false, kProcesses.remedy),
      limit(kStack, limits.stack, true, kStack.remedy),
      core_dumps(limits),
      memory(limits),
      memory_limit(limits, context),
  };
}

}  // namespace ezpz::doctor
