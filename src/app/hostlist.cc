// `ezpz hostlist`: SLURM's host lists, for scripts and for checking ours against scontrol's.
#include "base/hostlist.h"
#include <nlohmann/json.hpp>
#include "base/json.h"

#include "app/command.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/text.h"

namespace ezpz::app {

int run_hostlist(const Words& words) {
  bool as_json = false;
  FlagTable table("ezpz hostlist [--json] expand LIST | ezpz hostlist compress HOST ...",
                  "expand prints the hosts of a SLURM list (nid[001-004,007]), one a line; "
                  "compress prints the short form of the hosts given.");
  table.add_switch({"--json"}, "For programs.", &as_json);
  if (table.wants_help(words)) {
    write_all(1, table.help());
    return 0;
  }
  const Result<std::vector<std::string>> parsed = table.parse(words);
  if (!parsed) return usage_error(parsed.error().one_line());
  if (parsed->size() < 2) return usage_error("expand LIST or compress HOST ... (see --help)");
  const std::string& verb = parsed->at(0);
  const std::vector<std::string> rest(parsed->begin() + 1, parsed->end());
  if (verb == "compress") {
    const std::string list = compress_hostlist(rest);
    write_all(1, (as_json ? dump(Json(list)) : list) + "\n");
    return 0;
  }
  if (verb != "expand") return usage_error("neither expand nor compress: " + verb);
  const Result<std::vector<std::string>> hosts = expand_hostlist(join(rest, ","));
  if (!hosts) return usage_error(hosts.error().one_line());
  write_all(
      1, as_json ? dump(Json(*hosts)) + "\n" : join(*hosts, "\n") + (hosts->empty() ? "" : "\n"));
  return 0;
}

}  // namespace ezpz::app
