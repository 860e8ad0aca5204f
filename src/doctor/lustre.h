// What Lustre's own `lfs` says of a folder. Pure: argv out, text in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"

namespace ezpz::doctor {

struct LustreTarget {
  std::string name;     // "OST0002", or the whole of what stands there
  int index = -1;       // of an OST; -1: unknown
  bool is_ost = false;  // else it holds metadata
  bool active = true;   // false: its server does not answer
  double total_bytes = 0;
  double free_bytes = 0;
  [[nodiscard]] double used_share() const;  // 0..1
};

// How new files in a folder are laid out.
struct LustreStripes {
  int count = 0;    // targets a file lies on; -1: all; 0: not told
  int offset = -1;  // the first target; -1: the file system chooses
  std::string pool;
};

struct LustreSight {
  std::vector<LustreTarget> targets;
  std::optional<LustreStripes> stripes;  // nothing: not told, or not in one word
};

Argv lustre_space_query(const std::string& folder);    // lfs df FOLDER
Argv lustre_stripes_query(const std::string& folder);  // lfs getstripe -d FOLDER

// Empty when it is no answer of `lfs df`.
std::vector<LustreTarget> read_lustre_space(std::string_view output);
std::optional<LustreStripes> read_lustre_stripes(std::string_view output);

}  // namespace ezpz::doctor
