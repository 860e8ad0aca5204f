// What the kernel lets this process have. /proc and /sys are the kernel's own and answer; the
// figures of other file systems come from children that were given a time limit (answers.h).
#include <string.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "doctor/look.h"

namespace ezpz::doctor {
namespace {

constexpr size_t kSmallFile = 256U << 10U;

struct Limit {
  Seen<uint64_t> soft;
  Seen<uint64_t> hard;
};

Limit limit_of(__rlimit_resource which) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0) {
    const auto why = Seen<uint64_t>::not_seen(std::string("getrlimit: ") + strerrordesc_np(errno));
    return {why, why};
  }
  const auto value = [](rlim_t amount) {
    return amount == RLIM_INFINITY ? kUnlimited : static_cast<uint64_t>(amount);
  };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

Seen<Space> space_of(const PathAnswers& answers, const std::string& path) {
  const auto found = answers.find(path);
  if (found == answers.end()) return Seen<Space>::not_seen("nobody asked for " + path);
  const PathAnswer& answer = found->second;
  if (!answer.answered) return Seen<Space>::not_seen(path + " did not answer in time");
  if (answer.error != 0) {
    return Seen<Space>::not_seen(path + ": " + strerrordesc_np(answer.error));
  }
  return Space{answer.total, answer.free, is_shared_file_system(answer.file_system)};
}

// "MemAvailable:   12345 kB"
Seen<uint64_t> meminfo(const Result<std::string>& text, std::string_view field) {
  if (!text) return Seen<uint64_t>::not_seen(text.error().one_line());
  for (const std::string& line : split_lines(*text)) {
    if (!line.starts_with(field)) continue;
    const std::vector<std::string> words = split_words(line);
    const auto amount = words.size() >= 2 ? parse_int(words[1]) : std::nullopt;
    if (amount && *amount >= 0) return static_cast<uint64_t>(*amount) * 1024;
  }
  return Seen<uint64_t>::not_seen("/proc/meminfo has no " + std::string(field));
}

std::optional<uint64_t> number_in(const std::string& path) {
  const Result<std::string> text = read_file(path, kSmallFile);
  if (!text) return std::nullopt;
  const std::string_view word = trim(*text);
  if (word == "max") return kUnlimited;
  const auto amount = parse_int(word);
  if (!amount || *amount < 0) return std::nullopt;
  // Version 1 says "no limit" with a number near the largest there is.
  return static_cast<uint64_t>(*amount) >= (1ULL << 60U) ? kUnlimited
                                                         : static_cast<uint64_t>(*amount);
}

struct CgroupFiles {
  std::string root;
  std::string limit;
  std::string used;
};

// The tightest limit of the group and all above it.
void look_at_cgroup(Limits* limits) {
  const Result<std::string> mine = read_file("/proc/self/cgroup", kSmallFile);
  if (!mine) {
    limits->cgroup_memory = Seen<uint64_t>::not_seen(mine.error().one_line());
    return;
  }
  limits->cgroup_memory = Seen<uint64_t>::not_seen("no memory controller under /sys/fs/cgroup");
  for (const std::string& line : split_lines(*mine)) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string> controllers = split(parts[1], ',');
    const bool v1 =
        std::find(controllers.begin(), controllers.end(), "memory") != controllers.end();
    if (!v1 && (parts[0] != "0" || !parts[1].empty())) continue;
    const CgroupFiles files =
        v1 ? CgroupFiles{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"}
           : CgroupFiles{"/sys/fs/cgroup", "memory.max", "memory.current"};
    std::string group = parts[2];
    while (true) {
      const std::string folder = files.root + group + "/";
      const auto limit = number_in(folder + files.limit);
      if (limit && (!limits->cgroup_memory || *limit < *limits->cgroup_memory)) {
        limits->cgroup_memory = *limit;
        const auto used = number_in(folder + files.used);
        limits->cgroup_memory_used =
            used ? Seen<uint64_t>(*used) : Seen<uint64_t>::not_seen("no " + files.used);
      }
      const size_t slash = group.rfind('/');
      if (slash == std::string::npos || group.empty()) break;
      group = group.substr(0, slash);
    }
  }
}

}  // namespace

std::string temporary_folder(const site::Environment& env) {
  return site::get(env, "TMPDIR").value_or("/tmp");
}

Limits look_at_limits(const site::Environment& env, const PathAnswers& answers) {
  Limits limits;
  limits.locked_memory = limit_of(RLIMIT_MEMLOCK).soft;
  const Limit files = limit_of(RLIMIT_NOFILE);
  limits.open_files = files.soft;
  limits.open_files_hard = files.hard;
  limits.processes = limit_of(RLIMIT_NPROC).soft;
  limits.stack = limit_of(RLIMIT_STACK).soft;
  limits.core_size = limit_of(RLIMIT_CORE).soft;
  limits.shm = space_of(answers, "/dev/shm");
  limits.tmp_path = temporary_folder(env);
  limits.tmp = space_of(answers, limits.tmp_path);
  limits.working_folder = space_of(answers, ".");
  const Result<std::string> memory = read_file("/proc/meminfo", kSmallFile);
  limits.memory_total = meminfo(memory, "MemTotal:");
  limits.memory_available = meminfo(memory, "MemAvailable:");
  limits.swap_total = meminfo(memory, "SwapTotal:");
  limits.swap_free = meminfo(memory, "SwapFree:");
  look_at_cgroup(&limits);
  const Result<std::string> pattern = read_file("/proc/sys/kernel/core_pattern", kSmallFile);
  limits.core_pattern = pattern ? Seen<std::string>(std::string(trim(*pattern)))
                                : Seen<std::string>::not_seen(pattern.error().one_line());
  return limits;
}

}  // namespace ezpz::doctor
