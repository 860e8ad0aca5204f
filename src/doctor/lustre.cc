#include "doctor/lustre.h"

#include <algorithm>

#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr size_t kMostTargets = 20'000;
constexpr double kBlock = 1024;

// "lustre-OST001f_UUID" -> 31; "/mnt[OST:31]" likewise.
std::optional<int> ost_index(std::string_view uuid, std::string_view mount) {
  const size_t bracket = mount.find("[OST:");
  if (bracket != std::string_view::npos) {
    const std::string_view rest = mount.substr(bracket + 5);
    if (const auto number = parse_int(rest.substr(0, rest.find(']')))) {
      return static_cast<int>(*number);
    }
  }
  const size_t at = uuid.find("OST");
  if (at == std::string_view::npos || at + 7 > uuid.size()) return std::nullopt;
  int index = 0;
  for (const char c : uuid.substr(at + 3, 4)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return std::nullopt;
    index = index * 16 + digit;
  }
  return index;
}

std::string short_name(std::string_view uuid) {
  for (const std::string_view kind : {"OST", "MDT"}) {
    const size_t at = uuid.find(kind);
    if (at != std::string_view::npos) return std::string(uuid.substr(at, uuid.find('_', at) - at));
  }
  return std::string(uuid);
}

}  // namespace

double LustreTarget::used_share() const {
  if (total_bytes <= 0) return 0;
  return std::clamp(1 - free_bytes / total_bytes, 0.0, 1.0);
}

Argv lustre_space_query(const std::string& folder) { return {"lfs", "df", folder}; }

Argv lustre_stripes_query(const std::string& folder) { return {"lfs", "getstripe", "-d", folder}; }

std::vector<LustreTarget> read_lustre_space(std::string_view output) {
  // UUID 1K-blocks Used Available Use% Mounted-on, a row a target; "OST0003 : inactive device";
  // a summary row at the end, which is what hides the full one.
  std::vector<LustreTarget> targets;
  for (const std::string& line : split_lines(output)) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() < 3 || targets.size() >= kMostTargets) continue;
    const bool is_ost = words[0].find("OST") != std::string::npos;
    if (!is_ost && words[0].find("MDT") == std::string::npos) continue;
    LustreTarget target;
    target.is_ost = is_ost;
    target.name = short_name(words[0]);
    if (words[1] == ":") {
      target.active = false;
      target.index = ost_index(words[0], "").value_or(-1);
      targets.push_back(std::move(target));
      continue;
    }
    if (words.size() < 6) continue;
    const auto total = parse_double(words[1]);
    const auto available = parse_double(words[3]);
    if (!total || !available || *total < 0 || *available < 0) continue;
    target.total_bytes = *total * kBlock;
    target.free_bytes = *available * kBlock;
    if (is_ost) target.index = ost_index(words[0], words[5]).value_or(-1);
    targets.push_back(std::move(target));
  }
  return targets;
}

std::optional<LustreStripes> read_lustre_stripes(std::string_view output) {
  // "stripe_count:  1 stripe_size:   1048576 pattern: raid0 stripe_offset: -1 pool: fast". A
  // composite layout repeats the words for each component: what a file begins with comes first.
  LustreStripes stripes;
  bool found = false;
  const std::vector<std::string> words = split_words(output);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& name = words[i];
    const auto number = parse_int(words[i + 1]);
    if ((name == "stripe_count:" || name == "lmm_stripe_count:") && number && !found) {
      if (*number < -1 || *number > 65535) return std::nullopt;
      stripes.count = static_cast<int>(*number);
      found = true;
    } else if ((name == "stripe_offset:" || name == "lmm_stripe_offset:") && number) {
      if (stripes.offset < 0) stripes.offset = static_cast<int>(std::clamp(*number, -1L, 65535L));
    } else if (name == "pool:" || name == "lmm_pool:") {
      if (stripes.pool.empty()) stripes.pool = printable(words[i + 1], 64);
    }
  }
  if (!found) return std::nullopt;
  return stripes;
}

}  // namespace ezpz::doctor
